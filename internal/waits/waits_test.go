package waits

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestAccount checks where the time of a sample goes.
func TestAccount(t *testing.T) {
	at := func(kind Kind, object string) sample {
		return sample{waits: []portion{{Place: Place{Kind: kind, Object: object}, time: 100 * ms}}}
	}
	busy := at(Unknown, "")
	busy.onCPU = 30 * ms
	queued := at(Disk, "/dev/sdb")
	queued.onCPU = 20 * ms
	queued.queued = 30 * ms
	piped := at(Process, "tar")
	piped.waits[0].feeder = 2
	back := at(Process, "ssh")
	back.waits[0].feeder = 1
	half := at(Disk, "/dev/sdb")
	half.waits = []portion{{Place: Place{Kind: Disk, Object: "/dev/sdb"}, time: 60 * ms},
		{Place: Place{Kind: Process}, time: 40 * ms, feeder: 2}}
	for name, c := range map[string]struct {
		all  map[int]process
		want map[Place]time.Duration
	}{
		"one thread": {map[int]process{1: {threads: []sample{at(Disk, "/dev/sdb")}}},
			map[Place]time.Duration{{Kind: Disk, Object: "/dev/sdb"}: 100 * ms}},
		"the processor, its queue and a disk": {map[int]process{1: {threads: []sample{queued}}},
			map[Place]time.Duration{{Kind: CPU}: 20 * ms, {Kind: RunQueue}: 30 * ms,
				{Kind: Disk, Object: "/dev/sdb"}: 50 * ms}},
		"an idle pool and a disk": {
			map[int]process{1: {threads: []sample{at(Lock, futex), at(Sleep, ""), at(Disk, "/dev/sdb")}}},
			map[Place]time.Duration{{Kind: Disk, Object: "/dev/sdb"}: 100 * ms}},
		"an idle pool": {map[int]process{1: {threads: []sample{at(Lock, futex), at(Lock, futex)}}},
			map[Place]time.Duration{{Kind: Unknown}: 100 * ms}},
		"the only thread's lock": {map[int]process{1: {threads: []sample{at(Lock, futex)}}},
			map[Place]time.Duration{{Kind: Lock, Object: futex}: 100 * ms}},
		"a pipe's other end": {
			map[int]process{1: {threads: []sample{piped}}, 2: {name: "tar", threads: []sample{queued}}},
			map[Place]time.Duration{{Kind: CPU, Program: "tar"}: 20 * ms, {Kind: RunQueue, Program: "tar"}: 30 * ms,
				{Kind: Disk, Object: "/dev/sdb", Program: "tar"}: 50 * ms}},
		"two waits in one interval": {
			map[int]process{1: {threads: []sample{half, at(Lock, futex)}}, 2: {name: "tar", threads: []sample{queued}}},
			map[Place]time.Duration{{Kind: Disk, Object: "/dev/sdb"}: 60 * ms, {Kind: CPU, Program: "tar"}: 8 * ms,
				{Kind: RunQueue, Program: "tar"}: 12 * ms, {Kind: Disk, Object: "/dev/sdb", Program: "tar"}: 20 * ms}},
		"two that wait for each other": {
			map[int]process{1: {threads: []sample{piped}}, 2: {name: "tar", threads: []sample{back}}},
			map[Place]time.Duration{{Kind: Unknown}: 100 * ms}},
		"more than one processor": {map[int]process{1: {threads: []sample{busy, queued}}},
			map[Place]time.Duration{{Kind: CPU}: 20 * ms, {Kind: RunQueue}: 30 * ms,
				{Kind: Disk, Object: "/dev/sdb"}: 50 * ms}},
		"ended": {nil, map[Place]time.Duration{{Kind: Unknown}: 100 * ms}},
	} {
		a := newAccount()
		a.add(100*ms, 1, c.all)
		sum := time.Duration(0)
		for _, w := range a.waits(false) {
			sum += w.Time
			if c.want[w.Place] != w.Time {
				t.Errorf("%s: %+v, want %+v", name, w, c.want)
			}
		}
		if sum != 100*ms {
			t.Errorf("%s: %v of 100 ms", name, sum)
		}
	}
}

// TestAccount_Quota: the kernel counts the time without quota as time in the run queue.
func TestAccount_Quota(t *testing.T) {
	a := account{spent: map[Place]time.Duration{{Kind: RunQueue}: 60 * ms, {Kind: CPU}: 40 * ms}}
	a.throttled("", 50*ms, true)
	if a.spent[Place{Kind: Quota}] != 50*ms || a.spent[Place{Kind: RunQueue}] != 10*ms {
		t.Errorf("%+v", a.spent)
	}
	a.throttled("", time.Second, true)
	if a.spent[Place{Kind: Quota}] != 60*ms {
		t.Errorf("%+v", a.spent)
	}
}

// TestAccount_QuotaUnread: where a group cannot be read, its queue may be its quota.
func TestAccount_QuotaUnread(t *testing.T) {
	tar := Place{Kind: RunQueue, Program: "tar"}
	a := account{spent: map[Place]time.Duration{{Kind: RunQueue}: 60 * ms, tar: 10 * ms}}
	a.throttled("", 20*ms, false)
	if a.spent[Place{Kind: Quota}] != 20*ms || a.spent[Place{Kind: Unknown}] != 40*ms || a.spent[tar] != 10*ms {
		t.Errorf("%+v", a.spent)
	}
}
