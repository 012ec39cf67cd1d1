"""Configuration and command lines of munged, MariaDB and the Slurm daemons (text only)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.live.options import LabOptions, Places, Ports

CLUSTER = "lab"
ACCOUNT = "lab"
DATABASE_USER = "slurm"
DATABASE_PASSWORD = "lab"
MAX_JOBS = 20_000

CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainCores=no
"""
NO_CGROUP_CONF = "CgroupAutomount=no\n"

DATABASE_INIT = f"""\
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS '{DATABASE_USER}'@'127.0.0.1' IDENTIFIED BY '{DATABASE_PASSWORD}';
GRANT ALL ON slurm_acct_db.* TO '{DATABASE_USER}'@'127.0.0.1';
"""

_WITH_CGROUP = """\
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
"""
# OverMemoryKill takes the place of the kernel: a job over its --mem ends FAILED 0:9.
_WITHOUT_CGROUP = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
"""


@dataclass(frozen=True, slots=True)
class SlurmPlan:
    """Everything the texts below depend on; `host` is this machine's short name."""

    options: LabOptions
    places: Places
    ports: Ports
    host: str
    cgroup: bool

    @property
    def nodes(self) -> tuple[str, ...]:
        """Node names: unique on this machine, since they also name cgroups."""
        return tuple(f"{self.places.tag}n{number}" for number in self.numbers)

    @property
    def numbers(self) -> range:
        return range(1, self.options.nodes + 1)

    def slurm_conf(self) -> str:
        """slurm.conf: everything binds to 127.0.0.1, also srun's ephemeral ports."""
        parts = (
            self._daemons(),
            _WITH_CGROUP if self.cgroup else _WITHOUT_CGROUP,
            self._scheduling(),
            self._accounting(),
            self._nodes(),
            self.options.slurm_conf_extra,
        )
        return "\n".join(part.rstrip("\n") for part in parts) + "\n"

    def _daemons(self) -> str:
        places = self.places
        return f"""\
ClusterName={CLUSTER}
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser=slurm
SlurmdUser=root
SlurmctldPort={self.ports.slurmctld}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={places.munge_socket}
CredType=cred/munge
StateSaveLocation={places.folder}/state
SlurmdSpoolDir={places.folder}/spool.%n
SlurmctldPidFile={places.run}/slurmctld.pid
SlurmdPidFile={places.run}/slurmd.%n.pid
SlurmctldLogFile={places.journals}/slurmctld.log
SlurmdLogFile={places.journals}/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
"""

    def _scheduling(self) -> str:
        options = self.options
        return f"""\
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=5,batch_sched_delay=0
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait={options.kill_wait_s}
MinJobAge={options.min_job_age_s}
MaxJobCount={MAX_JOBS}
MaxArraySize=10001
SlurmctldTimeout=30
SlurmdTimeout={options.slurmd_timeout_s}
MessageTimeout=20
InactiveLimit=0
TCPTimeout=5
JobAcctGatherFrequency=1
"""

    def _accounting(self) -> str:
        if not self.options.accounting:
            return "AccountingStorageType=accounting_storage/none\n"
        # AuthInfo is not used for the connection to slurmdbd: there the munge socket's path
        # goes into AccountingStoragePass.
        return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self.ports.slurmdbd}
AccountingStorageUser=slurm
AccountingStoragePass={self.places.munge_socket}
"""

    def _nodes(self) -> str:
        options = self.options
        head, last = f"{self.places.tag}n", options.nodes
        partition = "Nodes=ALL MaxTime=INFINITE DefaultTime=10 State=UP"
        return f"""\
NodeName={head}[1-{last}] NodeHostname={self.host} NodeAddr=127.0.0.1 \
Port=[{self.ports.slurmd(1)}-{self.ports.slurmd(last)}] \
CPUs={options.node_cpus} RealMemory={options.node_memory_mb} State=UNKNOWN
PartitionName=batch {partition} Default=YES PriorityTier=10 OverSubscribe=NO
PartitionName=low {partition} PriorityTier=1 PreemptMode=REQUEUE
PartitionName=scav {partition} PriorityTier=1 PreemptMode=CANCEL
PartitionName=high {partition} PriorityTier=100
"""

    def slurmdbd_conf(self) -> str:
        """slurmdbd.conf. No CommitDelay: it adds a second before sacct sees anything."""
        return f"""\
DbdHost={self.host}
DbdAddr=127.0.0.1
DbdPort={self.ports.slurmdbd}
CommunicationParameters=NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={self.places.munge_socket}
SlurmUser=slurm
PidFile={self.places.run}/slurmdbd.pid
LogFile={self.places.journals}/slurmdbd.log
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.ports.mariadbd}
StorageUser={DATABASE_USER}
StoragePass={DATABASE_PASSWORD}
StorageLoc=slurm_acct_db
"""

    def munged(self) -> list[str]:
        folder = self.places.munge_socket.parent
        return [
            "/usr/sbin/munged",
            "--foreground",
            f"--socket={self.places.munge_socket}",
            f"--key-file={folder}/key",
            f"--pid-file={folder}/pid",
            f"--seed-file={folder}/seed",
            f"--log-file={folder}/log",
        ]

    def install_database(self) -> list[str]:
        return [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.places.folder}/mysql",
            # Names of temporary tables are the same in every server: in /tmp two installations
            # at once remove each other's.
            f"--tmpdir={self.places.folder}/mysql.tmp",
            "--user=mysql",
            "--skip-test-db",
            "--auth-root-authentication-method=socket",
        ]

    def mariadbd(self) -> list[str]:
        folder = self.places.folder / "mysql"
        return [
            "/usr/sbin/mariadbd",
            "--no-defaults",
            "--user=mysql",
            f"--datadir={folder}",
            f"--tmpdir={folder}.tmp",
            f"--socket={folder}/socket",
            "--bind-address=127.0.0.1",
            f"--port={self.ports.mariadbd}",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=64M",
            "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0",
            "--max-allowed-packet=16M",
            f"--init-file={self.places.etc}/database.sql",
            f"--pid-file={folder}/pid",
        ]

    def ask_database(self) -> list[str]:
        return [
            "mariadb",
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={self.ports.mariadbd}",
            "--protocol=tcp",
            f"--user={DATABASE_USER}",
            f"--password={DATABASE_PASSWORD}",
            "--execute=use slurm_acct_db",
        ]
