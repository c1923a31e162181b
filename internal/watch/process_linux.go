package watch

import (
	"bytes"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
)

// process is a process as Match sees it.
type process struct {
	Owner
	loginShell bool // it leads a session that has a terminal
	named      bool // Match asks for it, by one of its names
	lends      bool // Match asks for its descendants as well: by its PID or a name of its program, not by its unit's
}

// procfs is where Linux lists its processes.
const procfs = "/proc"

// readProcesses returns the processes of a host that match asks for, or that descend from such processes, by PID.
func readProcesses(root string, pids []int, match *Match) map[int]*process {
	all := make(map[int]*process, len(pids))
	for _, pid := range pids {
		p, err := readProcess(root, pid, match)
		if err == nil {
			all[pid] = p
		}
	}
	for _, p := range all {
		if p.named {
			p.matched = true
			continue
		}
		p.Ancestor = ancestor(all, p, len(match.PIDs) > 0)
		p.matched = p.Ancestor != nil
	}
	return all
}

// ancestor returns the nearest ancestor of a process that Match asks for; nil: none. The search by name
// ends at a login shell, since a user's programs are not sshd's. beyondLogin lifts that.
func ancestor(all map[int]*process, p *process, beyondLogin bool) *Owner {
	for range all { // PIDs are read one after the other, so that their parents may form a circle
		if p.loginShell && !beyondLogin {
			return nil
		}
		p = all[p.Parent]
		if p == nil {
			return nil
		}
		if p.lends {
			owner := p.Owner
			return &owner
		}
	}
	return nil
}

// readProcess reads one process.
func readProcess(root string, pid int, match *Match) (*process, error) {
	dir := root + "/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil, err
	}
	p := &process{Owner: Owner{PID: pid}}
	if err := p.parseStat(stat); err != nil {
		return nil, err
	}
	p.readCgroup(dir)
	names := []string{p.Program}
	if match.Program != "" || match.Name != "" {
		line, err := os.ReadFile(dir + "/cmdline")
		if err == nil && len(line) > 0 {
			args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
			var script string
			script, p.Script = scriptOf(args)
			names = append(names, path.Base(args[0]), script, p.Script) // a program may have renamed its main thread
		}
	}
	p.named = match.named(&p.Owner, names...)
	p.lends = match.named(&Owner{PID: pid}, names...)
	return p, nil
}

// parseStat reads "PID (PROGRAM) STATE PARENT GROUP SESSION TERMINAL …" (proc_pid_stat(5)).
func (p *process) parseStat(stat []byte) error {
	open := bytes.IndexByte(stat, '(')
	end := bytes.LastIndexByte(stat, ')') // the name may hold parentheses
	if open < 0 || end < open {
		return errors.New("not a line of /proc/PID/stat")
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 5 {
		return errors.New("a short line of /proc/PID/stat")
	}
	p.Program = string(stat[open+1 : end])
	parent, err := strconv.Atoi(fields[1])
	p.Parent = parent
	p.loginShell = fields[3] == strconv.Itoa(p.PID) && fields[4] != "0"
	return err
}

// readCgroup reads the unit and the container of a process.
func (o *Owner) readCgroup(dir string) {
	groups, err := os.ReadFile(dir + "/cgroup")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(groups)) {
		// 0::/system.slice/x.service, or with version 1 12:name=systemd:/system.slice/x.service
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		kind, path, _ := strings.Cut(rest, ":")
		if number != "0" && kind != "name=systemd" {
			continue
		}
		if unit, container := unitOf(path); unit != "" || container != "" {
			o.Unit = unit
			o.Container = container
		}
	}
}

// readOwner reads the owner of a process without its ancestors.
func readOwner(pid int) *Owner {
	p, err := readProcess(procfs, pid, &Match{})
	if err != nil {
		return &Owner{PID: pid}
	}
	return &p.Owner
}

// Running reports whether a process runs here that has the name, as a program, a script, a unit or a container, and
// returns the names of all programs and scripts that this user may see.
func Running(name string) (found bool, names []string) {
	pids, err := sockdiag.Processes()
	if err != nil {
		return false, nil
	}
	self := os.Getpid()
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == self })
	for _, p := range readProcesses(procfs, pids, &Match{Name: name}) {
		found = found || p.named
		names = append(names, p.Program)
		if p.Script != "" {
			names = append(names, p.Script)
		}
	}
	slices.Sort(names)
	return found, slices.Compact(names)
}
