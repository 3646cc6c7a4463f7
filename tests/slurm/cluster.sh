#!/usr/bin/env bash
# A real Slurm cluster of one node on this machine, for tests and for trying the `slurm` profile out.
#
#   sudo tests/slurm/cluster.sh start     bring it up, return once the node is idle
#   sudo tests/slurm/cluster.sh status    say what runs; exit code 0 only if the node answers
#   sudo tests/slurm/cluster.sh stop      cancel its jobs, stop it, remove everything it wrote
#
# Needs Debian's or Ubuntu's packages `slurm-wlm` and `munge`; needs neither systemd, nor a database, nor a GPU.
# `start` on a running cluster and `stop` on a stopped one do nothing, and succeed.
#
# What runs:
#   munged      lets the daemons and the commands trust each other (its own key and socket, so that a munged
#               which the machine already has is neither used nor disturbed)
#   slurmctld   the controller: takes jobs from sbatch, decides when each of them runs
#   slurmd      the compute node: runs the jobs. It is called `localhost` and has this machine's cores and memory,
#               and two fake GPUs (/dev/null and /dev/zero): a job asks for one and gets CUDA_VISIBLE_DEVICES,
#               exactly as on a real GPU node, but there is nothing behind it
#
# The three files of its configuration must lie in /etc/slurm: Snakemake's Slurm plugin removes SLURM_CONF from
# the environment of its jobs, so a configuration elsewhere would be lost there. Each begins with a marker line;
# a configuration without it belongs to somebody else's cluster and is never overwritten or removed.
# Everything else (key, logs, pid files, the controller's memory) is in one folder, removed by `stop`:
#   PLUMBLINE_SLURM_STATE     that folder                                      (default /var/tmp/plumbline-slurm)
#   PLUMBLINE_SLURM_TIMEOUT   seconds that `start` waits for the idle node     (default 60)
set -euo pipefail

readonly MARKER="# Written by plumbline's tests/slurm/cluster.sh: removed by 'cluster.sh stop'"
readonly CONF_DIR=/etc/slurm
readonly CONF_FILES=(slurm.conf gres.conf cgroup.conf)
readonly START_TIMEOUT="${PLUMBLINE_SLURM_TIMEOUT:-60}"
state="${PLUMBLINE_SLURM_STATE:-/var/tmp/plumbline-slurm}"

say() { printf 'cluster.sh: %s\n' "$*"; }
die() {
    printf 'cluster.sh: %s\n' "$*" >&2
    exit 1
}

# is_ours FILE: does FILE begin with our marker line?
is_ours() { [[ -f $1 ]] && [[ $(head -n 1 "$1") == "$MARKER" ]]; }

# A running cluster's folder is the one that its slurm.conf names, whatever the variable says now.
find_state() {
    local recorded
    if is_ours "$CONF_DIR/slurm.conf"; then
        recorded=$(sed -n 's/^StateSaveLocation=\(.*\)\/ctld$/\1/p' "$CONF_DIR/slurm.conf")
        [[ -z $recorded ]] || state=$recorded
    fi
}

refuse_foreign_config() {
    local name
    for name in "${CONF_FILES[@]}"; do
        if [[ -e $CONF_DIR/$name ]] && ! is_ours "$CONF_DIR/$name"; then
            die "$CONF_DIR/$name exists and was not written by this script: this machine seems to belong to a" \
                "Slurm cluster already. Nothing was changed."
        fi
    done
}

require_tools() {
    local tool missing=()
    for tool in munged mungekey slurmctld slurmd sbatch sinfo; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    [[ ${#missing[@]} -eq 0 ]] || die "not found: ${missing[*]}. Install with: apt-get install slurm-wlm munge"
}

# is_alive PID NAME: a number may be given to another process or stay with a zombie, hence the look at both.
is_alive() {
    local name
    name=$(awk '/^Name:/ { name = $2 } /^State:/ { if ($2 != "Z") print name }' "/proc/$1/status" 2>/dev/null) || true
    [[ $name == "$2"* ]]
}

# daemon_pid NAME: the process id of our running daemon NAME, or nothing.
daemon_pid() {
    local pid
    pid=$(cat "$state/run/$1.pid" 2>/dev/null) || return 0
    if is_alive "$pid" "$1"; then printf '%s\n' "$pid"; fi
}

all_daemons_run() { [[ -n $(daemon_pid munged) && -n $(daemon_pid slurmctld) && -n $(daemon_pid slurmd) ]]; }

# The node's state as the controller sees it: idle, mixed or allocated (busy), down, ... or nothing.
node_state() { timeout 5 sinfo --noheader --partition=cpu --Format=StateCompact 2>/dev/null | tr -d ' *' || true; }

node_is_up() { [[ $(node_state) =~ ^(idle|mix|alloc|comp)$ ]]; }

write_config() {
    local memory_mb
    memory_mb=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
    mkdir -p "$CONF_DIR"
    cat >"$CONF_DIR/slurm.conf" <<CONF
$MARKER
ClusterName=plumbline
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root

AuthType=auth/munge
AuthInfo=socket=$state/munge/munge.socket

StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/slurmd
SlurmctldPidFile=$state/run/slurmctld.pid
SlurmdPidFile=$state/run/slurmd.pid
SlurmctldLogFile=$state/log/slurmctld.log
SlurmdLogFile=$state/log/slurmd.log

# Works in a container too: no cgroups, no pinning. Memory is counted when jobs are placed, and not enforced.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
SlurmdParameters=config_overrides

# No accounting database: 'sacct' knows nothing here, 'squeue' shows a job for MinJobAge seconds after its end.
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MinJobAge=300

# A job of the partition 'urgent' takes the place of jobs of the others, which are put into the queue again.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE

# Look for work often: a test is made of short jobs.
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=5
ReturnToService=2

GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname=$(hostname -s) CPUs=$(nproc) RealMemory=$memory_mb Gres=gpu:fake:2
PartitionName=cpu Nodes=localhost Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=localhost Default=NO MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=localhost Default=NO MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
    # Each GPU needs a device file: a bare Count= leaves the node invalid until the controller starts afresh.
    cat >"$CONF_DIR/gres.conf" <<CONF
$MARKER
NodeName=localhost Name=gpu Type=fake File=/dev/null
NodeName=localhost Name=gpu Type=fake File=/dev/zero
CONF
    cat >"$CONF_DIR/cgroup.conf" <<CONF
$MARKER
CgroupAutomount=no
CONF
}

make_state() {
    if [[ -e $state && ! -e $state/.plumbline-slurm ]]; then
        die "$state exists and was not made by this script: set PLUMBLINE_SLURM_STATE to another folder"
    fi
    # munged insists on: nobody else may write here, everybody may reach the socket.
    mkdir -p "$state"/{munge,run,log,ctld,slurmd}
    chmod 0755 "$state" "$state"/{munge,run,log,ctld,slurmd}
    touch "$state/.plumbline-slurm"
}

# run_daemon COMMAND...: each of the three goes to the background by itself; it must not keep our output open,
# or a caller who reads that output through a pipe would wait for ever.
run_daemon() {
    "$@" </dev/null >>"$state/log/start.log" 2>&1 || give_up "'$*' failed (exit code $?)"
}

give_up() {
    local log
    printf 'cluster.sh: %s\n' "$1" >&2
    for log in "$state"/log/*.log; do
        printf -- '--- the end of %s\n' "$log" >&2
        tail -n 25 "$log" >&2
    done
    stop >&2 || true
    exit 1
}

start() {
    require_tools
    refuse_foreign_config
    find_state
    if all_daemons_run && node_is_up; then
        say "already running (state in $state)"
        return 0
    fi
    stop # what a crash or a reboot may have left
    make_state
    write_config

    mungekey --create --force --keyfile="$state/munge/munge.key"
    run_daemon munged --key-file="$state/munge/munge.key" --socket="$state/munge/munge.socket" \
        --pid-file="$state/run/munged.pid" --log-file="$state/log/munged.log" --seed-file="$state/munge/munge.seed"
    run_daemon slurmctld -c # -c: begin without remembered jobs and nodes
    run_daemon slurmd -N localhost

    local deadline=$((SECONDS + START_TIMEOUT))
    until [[ $(node_state) == idle ]]; do
        ((SECONDS < deadline)) || give_up "the node is not idle after $START_TIMEOUT s (state: '$(node_state)')"
        sleep 0.5
    done
    say "running: 1 node, $(nproc) CPUs, partitions cpu (default), gpu and urgent, 2 fake GPUs (state in $state)"
}

cancel_jobs() {
    local deadline=$((SECONDS + 15)) jobs
    [[ -n $(daemon_pid slurmctld) ]] || return 0
    while ((SECONDS < deadline)); do
        jobs=$(timeout 5 squeue --noheader --format=%A 2>/dev/null) || return 0
        [[ -n $jobs ]] || return 0
        # shellcheck disable=SC2086  # one word for each job is meant
        timeout 5 scancel $jobs 2>/dev/null || true
        sleep 1
    done
}

stop_daemon() {
    local pid deadline=$((SECONDS + 10))
    pid=$(daemon_pid "$1")
    [[ -n $pid ]] || return 0
    kill "$pid" 2>/dev/null || true
    while is_alive "$pid" "$1"; do # not the pid file: slurmctld removes it before it has let go of its port
        if ((SECONDS >= deadline)); then
            kill -KILL "$pid" 2>/dev/null || true
            return 0
        fi
        sleep 0.2
    done
}

stop() {
    local name
    find_state
    cancel_jobs
    stop_daemon slurmd
    stop_daemon slurmctld
    stop_daemon munged
    # With a slurm.conf but no controller each call of Snakemake takes 10 s longer: leave none behind.
    for name in "${CONF_FILES[@]}"; do
        if is_ours "$CONF_DIR/$name"; then rm -f "$CONF_DIR/$name"; fi
    done
    if [[ -e $state/.plumbline-slurm ]]; then rm -rf "$state"; fi
}

status() {
    local name pid
    if ! is_ours "$CONF_DIR/slurm.conf"; then
        say "not running (no configuration of this script in $CONF_DIR)"
        return 3
    fi
    find_state
    for name in munged slurmctld slurmd; do
        pid=$(daemon_pid "$name")
        say "$name: ${pid:-not running}"
    done
    say "node: $(node_state)"
    say "logs: $state/log"
    all_daemons_run && node_is_up
}

usage() { die "usage: cluster.sh start|stop|status"; }

[[ $# -eq 1 ]] || usage
case $1 in
    start | stop | status) ;;
    *) usage ;;
esac
[[ $(id -u) -eq 0 ]] || die "must run as root (it starts daemons and writes $CONF_DIR): sudo $0 $1"
case $1 in
    start) start ;;
    stop)
        find_state
        if is_ours "$CONF_DIR/slurm.conf" || [[ -e $state/.plumbline-slurm ]]; then
            stop
            say "stopped"
        else
            say "not running: nothing to stop"
        fi
        ;;
    status) status ;;
esac
