// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/probe.h"
#include "kernels/cpu/settings.h"

namespace okl {
namespace {

constinit std::mutex profile_mutex;
constinit std::optional<omni_machine> profile;
constinit std::atomic<bool> demoted{false};
constinit std::atomic<IsaMask> modelled{0};

template <size_t size>
void copy_text(char (&destination)[size], std::string_view source) {
  const size_t count = std::min(source.size(), size - 1);
  source.copy(destination, count);
  std::fill(destination + count, destination + size, '\0');
}

const omni_machine& hardware() {
  static const omni_machine machine = [] {
    const SystemFiles files;
    return probe_machine(hardware_cpu(), files, read_topology(files, thread_affinity()));
  }();
  return machine;
}

void apply_self_test(omni_machine& machine) {
  if ((machine.traits & OMNI_TRAIT_BF16_DOT_DEMOTED) != 0) machine.isa &= ~IsaMask{OMNI_ISA_AVX512BF16};
}

}  // namespace

omni_machine probe_machine(const CpuSource& cpu, const SystemFiles& files, const Topology& topology) {
  omni_machine machine{};
  machine.size = sizeof machine;
  machine.isa = machine.isa_hardware = detect_isa(cpu);
  const CpuIdentity identity = identify_cpu(cpu);
  machine.traits = traits_of(identity.vendor, identity.family, identity.model);
  machine.cores_online = topology.online;
  machine.cores_usable = topology.usable;
  const CacheSizes caches = read_caches(cpu, files);
  machine.l1d_bytes = caches.l1d;
  machine.l2_bytes = caches.l2;
  machine.l3_bytes = caches.l3;
  copy_text(machine.vendor, identity.vendor);
  copy_text(machine.name, identity.brand);
  copy_text(machine.amx_reason, amx_absence(cpu));
  return machine;
}

IsaMask hardware_isa() {
  IsaMask isa = hardware().isa_hardware | modelled.load(std::memory_order_acquire);
  const AmxPermission* permission = amx_permission_if_requested();
  if (permission != nullptr && !permission->granted) isa &= ~kIsaAmxBits;
  if (demoted.load(std::memory_order_acquire)) isa &= ~IsaMask{OMNI_ISA_AVX512BF16};
  return isa;
}

omni_machine current_machine() {
  const IsaMask cap = settings().max_isa;
  {
    const std::lock_guard lock(profile_mutex);
    if (profile) {
      omni_machine machine = *profile;
      machine.isa &= cap;
      apply_self_test(machine);
      return machine;
    }
  }
  omni_machine machine = hardware();
  const IsaMask model = modelled.load(std::memory_order_acquire);
  machine.isa |= model;
  machine.isa_hardware |= model;
  if ((model & OMNI_ISA_AMX_TILE) != 0) copy_text(machine.amx_reason, "");
  const AmxPermission* permission = amx_permission_if_requested();
  if (permission != nullptr && !permission->granted) {
    machine.isa &= ~kIsaAmxBits;
    machine.isa_hardware &= ~kIsaAmxBits;
    copy_text(machine.amx_reason, permission->reason);
  } else if ((machine.isa & kIsaAmxBits) != 0 && (cap & OMNI_ISA_AMX_TILE) == 0) {
    copy_text(machine.amx_reason, "capped by OMNI_MAX_ISA or omni_set_max_isa; permission not requested");
  }
  machine.isa &= cap;
  if (demoted.load(std::memory_order_acquire)) machine.traits |= OMNI_TRAIT_BF16_DOT_DEMOTED;
  apply_self_test(machine);
  return machine;
}

uint32_t default_thread_count() { return hardware().cores_usable; }

void set_bf16_dot_demoted(bool value) { demoted.store(value, std::memory_order_release); }

void set_modelled_isa(IsaMask bits) { modelled.store(bits, std::memory_order_release); }

void set_profile(const omni_machine* machine) {
  const std::lock_guard lock(profile_mutex);
  if (machine == nullptr) {
    profile.reset();
  } else {
    profile = *machine;
  }
}

bool profile_is_set() {
  const std::lock_guard lock(profile_mutex);
  return profile.has_value();
}

}  // namespace okl
