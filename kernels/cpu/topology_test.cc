// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/cpu/caches.h"
#include "kernels/cpu/cgroup.h"

namespace okl {
namespace {

namespace fs = std::filesystem;

CpuSet range(uint32_t count) {
  CpuSet cpus;
  for (uint32_t i = 0; i < count; ++i) cpus.push_back(i);
  return cpus;
}

// A folder with proc/ and sys/ that lives as long as the test.
class Topologies : public ::testing::Test {
 protected:
  Topologies() {
    std::string pattern = ::testing::TempDir() + "omni-topology-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    files_.root = root_.string();
  }
  ~Topologies() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const fs::path full = root_.string() + path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  void write_cpus(const std::string& possible, const std::string& present, const std::string& online) {
    write("/sys/devices/system/cpu/possible", possible);
    write("/sys/devices/system/cpu/present", present);
    write("/sys/devices/system/cpu/online", online);
  }
  // A host with `cpus` processors whose process is in `group` of the version 2 hierarchy.
  void write_unified(uint32_t cpus, const std::string& group, const std::string& mount_root = "/") {
    const std::string all = "0-" + std::to_string(cpus - 1);
    write_cpus(all, all, all);
    write("/proc/self/cgroup", "0::" + group);
    write("/proc/self/mountinfo",
          "21 1 0:20 / /sys rw - sysfs sysfs rw\n"
          "30 21 0:26 " +
              mount_root + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate");
  }

  fs::path root_;
  SystemFiles files_;
};

TEST(CpuList, Parses) {
  EXPECT_EQ(parse_cpu_list("0,3,5-6\n"), (CpuSet{0, 3, 5, 6}));
  EXPECT_EQ(parse_cpu_list("7,0-1,1"), (CpuSet{0, 1, 7}));
  EXPECT_EQ(parse_cpu_list(""), CpuSet{});
  EXPECT_EQ(parse_cpu_list("\n"), CpuSet{});
  EXPECT_EQ(parse_cpu_list(" 0 - 1,,x,3-,-4,5-4,2"), (CpuSet{0, 1, 2}));
  EXPECT_EQ(parse_cpu_list("0-18446744073709551615").size(), 8192u);
  EXPECT_EQ(parse_cpu_list("99999999999999999999"), CpuSet{});
}

TEST_F(Topologies, OnlineDiffersFromPossible) {  // AC-033
  write_cpus("0-7", "0-7", "0-1");
  EXPECT_EQ(read_topology(files_, std::nullopt).online, 2u);
  write_cpus("0-7", "0-7", "0,3,5-6");
  EXPECT_EQ(read_topology(files_, std::nullopt).online, 4u);
  EXPECT_EQ(read_topology(files_, std::nullopt).usable, 4u);
  EXPECT_EQ(read_topology(files_, CpuSet{3, 4, 6}).usable, 2u);
}

TEST_F(Topologies, NothingToReadIsOneProcessorOrTheAffinity) {
  EXPECT_EQ(read_topology(files_, std::nullopt).online, 1u);
  EXPECT_EQ(read_topology(files_, std::nullopt).usable, 1u);
  EXPECT_EQ(read_topology(files_, CpuSet{2, 5}).online, 2u);
  write_cpus("", "", "");
  EXPECT_EQ(read_topology(files_, CpuSet{2, 5, 6}).usable, 3u);
  write("/proc/stat", "cpu  1 2 3\ncpu0 1 2\ncpu1 1 2\ncpu12 1 2\nintr 5");
  EXPECT_EQ(read_topology(files_, CpuSet{0}).online, 3u);
  EXPECT_EQ(read_topology(files_, CpuSet{0}).usable, 1u);
}

TEST_F(Topologies, CgroupQuota) {  // AC-036
  write_unified(8, "/");
  write("/sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 4u);
  EXPECT_EQ(read_topology(files_, range(8)).online, 8u);
  write("/sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 8u);
  write("/sys/fs/cgroup/cpuset.cpus.effective", "0-3");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 4u);
}

TEST_F(Topologies, QuotaIsRoundedDownAndAtLeastOne) {
  write_unified(8, "/");
  write("/sys/fs/cgroup/cpu.max", "390000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 3u);
  write("/sys/fs/cgroup/cpu.max", "20000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 1u);
  write("/sys/fs/cgroup/cpu.max", "1600000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 8u) << "a quota above the machine is no reason for more threads";
  for (const char* nonsense : {"", "x y", "100000 0", "100000", "-1 100000"}) {
    write("/sys/fs/cgroup/cpu.max", nonsense);
    EXPECT_EQ(read_topology(files_, range(8)).usable, 8u) << nonsense;
  }
}

TEST_F(Topologies, QuotaOfAnAncestor) {
  write_unified(8, "/outer/inner");
  write("/sys/fs/cgroup/outer/inner/cpu.max", "600000 100000");
  write("/sys/fs/cgroup/outer/cpu.max", "200000 100000");
  write("/sys/fs/cgroup/other/cpu.max", "100000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 2u);
  write("/sys/fs/cgroup/outer/cpu.max", "max 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 6u);
}

TEST_F(Topologies, ContainerThatSeesItsGroupAsTheMount) {
  write_unified(8, "/docker/abc/job", "/docker/abc");
  write("/sys/fs/cgroup/job/cpu.max", "300000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 3u);
  write_unified(8, "/docker/abcdef", "/docker/abc");  // not below the mount's root: the mount point itself
  write("/sys/fs/cgroup/cpu.max", "500000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 5u);
}

TEST_F(Topologies, VersionOne) {
  write_cpus("0-7", "0-7", "0-7");
  write("/proc/self/cgroup", "4:cpuset:/jobs\n3:cpu,cpuacct:/jobs/a b\n0::/ignored");
  write("/proc/self/mountinfo",
        "40 21 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 21 0:31 / /sys/fs/cgroup/my\\040set rw - cgroup cgroup rw,cpuset");
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/a b/cpu.cfs_quota_us", "500000");
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/a b/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 5u);
  write("/sys/fs/cgroup/my set/jobs/cpuset.cpus", "2-4");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 3u);
  write("/sys/fs/cgroup/my set/jobs/cpuset.effective_cpus", "2-3");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 2u);
}

TEST_F(Topologies, WithoutMountinfoTheUsualPlaces) {
  write_cpus("0-7", "0-7", "0-7");
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_EQ(read_topology(files_, range(8)).usable, 4u);
}

TEST_F(Topologies, PerformanceCores) {
  write_cpus("0-15", "0-15", "0-15");
  write("/sys/devices/cpu_core/cpus", "0-7");
  write("/sys/devices/cpu_atom/cpus", "8-15");
  EXPECT_EQ(read_topology(files_, range(16)).usable, 8u);
  EXPECT_EQ(read_topology(files_, CpuSet{6, 7, 8, 9}).usable, 2u);
  EXPECT_EQ(read_topology(files_, CpuSet{8, 9, 10}).usable, 3u) << "a process confined to efficiency cores keeps them";
}

TEST(Affinity, OfThisThread) {
  const std::optional<CpuSet> cpus = thread_affinity();
  ASSERT_TRUE(cpus);
  EXPECT_GE(cpus->size(), 1u);
}

TEST_F(Topologies, CpuinfoIsAskedOnlyWhenItsFilesAreThere) {  // AC-032
  EXPECT_FALSE(cpuinfo_is_safe(files_));
  write_cpus("0-1", "0-1", "0-1");
  write("/sys/devices/system/cpu/kernel_max", "8191");
  EXPECT_FALSE(cpuinfo_is_safe(files_));
  write("/proc/cpuinfo", "");
  EXPECT_FALSE(cpuinfo_is_safe(files_)) << "libcpuinfo dereferences NULL here";
  write("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
  EXPECT_TRUE(cpuinfo_is_safe(files_));
  write("/proc/cpuinfo", "processor\t: 9\nvendor_id\t: GenuineIntel\n");
  EXPECT_FALSE(cpuinfo_is_safe(files_));
  write_cpus("", "0-1", "0-1");
  EXPECT_FALSE(cpuinfo_is_safe(files_));
}

}  // namespace
}  // namespace okl
