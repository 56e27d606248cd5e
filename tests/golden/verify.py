# SPDX-License-Identifier: Apache-2.0
"""verify.py OMNI_BENCH GOLDENS WORK_DIR CASE: runs `omni-bench verify` and checks its exit status and what it says."""
import glob
import json
import os
import platform
import shutil
import struct
import subprocess
import sys

bench, goldens, work, case = sys.argv[1:5]


def skip(reason):
    print('skipped:', reason)
    sys.exit(77)


def verify(arguments, expected, emulator=(), environment=None):
    """Runs it; returns (standard output, standard error)."""
    command = [*emulator, bench, 'verify', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700, env={**os.environ, **(environment or {})})
    print('$', *command, '\n' + done.stdout + done.stderr)
    if done.returncode != expected:
        sys.exit(f'exit status {done.returncode}, expected {expected}')
    return done.stdout, done.stderr


def require(condition, what):
    if not condition:
        sys.exit(f'not so: {what}')


def golden(*names):
    return [os.path.join(goldens, name) for name in names]


def files(folder, suffix):
    return sorted(glob.glob(os.path.join(folder, '*' + suffix)))


def summary(path):
    with open(path, encoding='utf-8') as stream:
        return json.load(stream)


def read(name):
    with open(golden(name)[0], 'rb') as stream:
        return bytearray(stream.read())


def write(name, data):
    path = os.path.join(work, name)
    with open(path, 'wb') as stream:
        stream.write(data)
    return path


def flip(data, tensor, byte, bit=0):
    """Flips one bit of a tensor in the bytes of a safetensors file."""
    length = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + length])
    data[8 + length + header[tensor]['data_offsets'][0] + byte] ^= 1 << bit
    return data


def test_files():
    report = os.path.join(work, 'report.json')
    out, _ = verify(['--json', report, *files(goldens, '.safetensors')], 0)
    result = summary(report)
    require(result['summary']['failed'] == 0 and result['summary']['passed'] > 0, 'all passed')
    require(all(f['kind'] and f['checks'] for f in result['files']), 'every file was checked')
    kernels = {c['kernel'] for f in result['files'] for c in f['checks'] if c['outcome'] == 'passed'}
    require(any('portable' in k for k in kernels), 'the portable tier was among the kernels')
    require(' passed, 0 failed' in out, 'the summary says so')


def test_digests():
    verify(files(goldens, '.json'), 0)


def more():
    folder = os.path.join(os.environ.get('OMNI_GOLDENS', ''), 'int4')
    if not os.environ.get('OMNI_GOLDENS'):
        skip('OMNI_GOLDENS is not set')
    if not os.path.isdir(folder):
        skip(f'{folder} does not exist')
    return folder


def test_more_files():
    report = os.path.join(work, 'report.json')
    verify(['--json', report, *files(more(), '.safetensors')], 0)
    for file in summary(report)['files']:
        outcomes = {check['outcome'] for check in file['checks']}
        require('passed' in outcomes, f"{file['path']} is {outcomes}")


def test_more_digests():
    folder = more()
    ours = {os.path.basename(path): open(path, 'rb').read() for path in files(goldens, '.json')}
    theirs = {os.path.basename(path): open(path, 'rb').read() for path in files(folder, '.json')}
    if ours == theirs:
        skip('the digest files are those of this repository, which golden.digests checks')
    verify(files(folder, '.json'), 0)


def named(out, *parts):
    lines = [line for line in out.splitlines() if 'failed: ' in line and all(part in line for part in parts)]
    require(lines, f'a failed line with {parts}')


def test_broken():
    name = 'w4a16_16x128_g64.safetensors'
    threads = ['--threads', '1,2']
    # One bit of row 3, channel 5 of a bf16 output [8][16], of a dequantised weight [16][128] and of packed bytes [16][64].
    for tensor, byte, index, kernel in (('out_bf16_avx512', 2 * (3 * 16 + 5), '[3][5]', 'gemm_torch_bf16_tg4_4x64_portable'),
                                        ('out_f32_avx512', 4 * (7 * 16 + 15), '[7][15]', 'gemm_torch_f32_tg4_4x64_portable'),
                                        ('dequant_bf16', 2 * (15 * 128 + 127), '[15][127]', 'dequant_tg4_64x16_portable'),
                                        ('packed_avx512', 9 * 64 + 2, '[9][2]', 'pack_tg4_64x16_portable')):
        path = write(name, flip(read(name), tensor, byte))
        out, _ = verify([*threads, path], 1)
        named(out, f'failed: {tensor}, kernel {kernel}: {index} expected 0x', 'found 0x', ' of ')
        require('failed: dequant' not in out or tensor != 'out_bf16_avx512', 'other tensors pass')
    out, _ = verify([*threads, write('gptq_asym_actorder_64x128_g32.safetensors',
                                     flip(read('gptq_asym_actorder_64x128_g32.safetensors'), 'expect_zeros', 70, 1))], 1)
    named(out, 'scales with qzeros', '[1][13]')  # zero of group 1, channel 6
    write('w4a16_16x128_g64.safetensors', read(name))
    out, _ = verify([*threads, write('group_16x128_g64.safetensors', flip(read('group_16x128_g64.safetensors'), 'out_group_f32', 4))], 1)
    named(out, 'out_group_f32', 'gemm_group_bf16_tg4_4x64_portable', '[0][1] expected 0x')
    # Inputs that are not beside it.
    os.remove(os.path.join(work, name))
    _, error = verify([*threads, os.path.join(work, 'group_16x128_g64.safetensors')], 3)
    require(error.count('\n') == 1 and 'w4a16_16x128_g64' in error, 'one line names the file that lacks')

    digests = json.loads(read('digests_real_shapes.json'))['o_2048x2048_g64']
    digests['sha256'] = {'out_m2_bf16': digests['sha256']['out_m2_bf16'][:-1] + 'z', 'another': '0' * 64}
    out, _ = verify([*threads, write('digests.json', json.dumps({'o': digests}).encode())], 1)
    named(out, 'o out_m2_bf16', 'the scalar contract agrees with what was found')
    require('not covered: o another' in out, 'an unknown digest is named')

    for what, data in (('header.safetensors', read(name)[:100]), ('data.safetensors', read(name)[:-1]), ('empty.safetensors', b''),
                       ('text.json', b'{"a"'), ('shape.json', b'{"o": {"sha256": {}, "N": -16, "K": 32, "group": 32, "seed": 1}}')):
        out, error = verify([*threads, write(what, data)], 3)
        require(error.count('\n') == 1 and error.startswith('malformed: ') and what in error, 'one line names it')
    wrong_code = flip(read(name), 'codes', 5, 7)
    _, error = verify([*threads, write('code.safetensors', wrong_code)], 3)
    require('codes[0][5] is ' in error, 'the code above 15 is named')

    empty = os.path.join(work, 'no goldens')
    os.makedirs(empty)
    for path in (empty, os.path.join(work, 'absent.safetensors')):
        _, error = verify([path], 2)
        require(error.count('\n') == 1, 'one line')
    # Beside a broken file the others are still checked, and a difference outweighs it.
    out, _ = verify([*threads, os.path.join(work, 'header.safetensors'), *golden(name)], 3)
    require('42 passed' in out or ' 0 failed' in out, 'the good file was checked')


def test_not_covered():
    """Unknown kinds are named, and alone they are no success."""
    def file(kind):
        header = json.dumps({'__metadata__': {'kind': kind}}).encode()
        return struct.pack('<Q', len(header)) + header

    paths = [write(kind + '.safetensors', file(kind)) for kind in ('w2a4', 'w8a2', 'kept_in_the_future')]
    out, _ = verify([*paths, write('plain.json', b'{"a": 1}')], 2)
    require(out.count('1 not covered') == 4 and '4 not covered' in out, 'four files are not covered')
    for kind in ('w2a4', 'w8a2', 'kept_in_the_future'):
        require(f'not covered: kind {kind}' in out, f'{kind} is named')
    out, _ = verify(['--threads', '1', *paths, *golden('group_edge_48x96_g128.safetensors')], 0)
    require('3 not covered' in out, 'they do not stop the rest')
    _, error = verify([write('kindless.safetensors', struct.pack('<Q', 2) + b'{}')], 3)
    require('kind' in error, 'a file without a kind is malformed')


def emulated(cpu, served, absent):
    """A processor that has the tiers `served` and lacks `absent`, on small files with ragged N, edge rows and act-order."""
    if platform.machine() != 'x86_64':
        skip('x86-64 only')
    emulator = shutil.which('qemu-x86_64-static')
    if emulator is None:
        skip('qemu-x86_64-static is not installed')
    if os.environ.get('OMNI_SANITIZED'):
        skip('sanitizers do not run under user emulation')
    report = os.path.join(work, 'report.json')
    names = ('w4a16_16x128_g64.safetensors', 'group_16x128_g64.safetensors', 'group_edge_48x96_g128.safetensors',
             'w4a8_64x256_g128.safetensors', 'w8a8_48x200_g128.safetensors', 'w4a16_64x64_g32.safetensors', 'group_64x64_g32.safetensors', 'gptq_asym_actorder_64x128_g32.safetensors')
    if cpu == 'Nehalem':  # fmaf() in software
        names = names[:4]
    verify(['--threads', '1,2', '--json', report, *golden(*names)], 0, emulator=(emulator, '-cpu', cpu))
    checks = [check for file in summary(report)['files'] for check in file['checks'] if check['kernel']]
    tiers = {}
    for check in checks:
        tiers.setdefault(check['kernel'].rsplit('_', 1)[1], set()).add(check['outcome'])
    for tier in served:
        require(tiers.get(tier) == {'passed'}, f'{tier} passed: {tiers}')
    for tier in absent:
        require(tiers.get(tier) == {'not run'}, f'{tier} is reported as not run: {tiers}')


def test_haswell():
    emulated('Haswell', ('avx2', 'twinavx2', 'portable'), ('avx512f', 'avx512bf16', 'twinavx512'))


def test_nehalem():
    emulated('Nehalem', ('portable',), ('avx2', 'twinavx2', 'avx512f', 'avx512bf16', 'twinavx512'))


shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
globals()['test_' + case]()
