package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// engine is the user's side of an engine child.
type engine struct {
	child   *exec.Cmd
	control *control
	ended   chan struct{} // closed by listen when the engine has gone
	tapped  bool

	mu        sync.Mutex // guards what follows, and sending
	tag       int
	replies   map[int]chan reply
	processes map[int]*Process
	failure   error // why the lab ended; set before ended is closed
}

func startEngine(ctx context.Context, c Config) (*engine, error) {
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	child := exec.Command("/proc/self/exe")
	child.Args = []string{engineName}
	child.ExtraFiles = []*os.File{theirs}
	child.Stderr = os.Stderr
	if c.Stderr != nil {
		child.Stderr = c.Stderr
	}
	child.SysProcAttr = namespaces()
	err = child.Start()
	theirs.Close()
	if err != nil {
		ours.conn.Close()
		return nil, refused(err)
	}
	e := &engine{child: child, control: ours, ended: make(chan struct{}), replies: map[int]chan reply{},
		processes: map[int]*Process{}}
	go e.listen()
	stop := context.AfterFunc(ctx, func() { e.close() })
	var files []*os.File
	if c.Tap != nil {
		files = append(files, c.Tap)
		e.tapped = true
	}
	_, err = e.ask(request{Op: opBuild, Path: &c.Path}, files...)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// namespaces returns the engine's namespaces. Only users without privileges need a user namespace.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if !mayAdminister() {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

func mayAdminister() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return data[0].Effective&needed == needed
}

func refused(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS) ||
		errors.Is(err, unix.EACCES) {
		return &Failed{fmt.Sprintf("this system lets an ordinary user make no namespaces: %v", err),
			"run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000 " +
				"kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (those of the three that exist)"}
	}
	return fmt.Errorf("starting the engine: %w", err)
}

// withheld returns advice when even a user namespace lacks the permissions that a lab needs.
func withheld(err error) error {
	for _, code := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT} {
		if errors.Is(err, code) {
			return &Failed{err.Error(),
				"outside of the container: its seccomp filter, AppArmor or SELinux withholds what a lab " +
					"makes (namespaces, mounts, netlink sockets, /dev/net/tun); or a container that may (docker run --privileged)"}
		}
	}
	return err
}

// listen reads the engine's messages until it ends, then ends all waiting calls.
func (e *engine) listen() {
	var err error
	for {
		var r reply
		var files []int
		files, err = e.control.receive(&r)
		if err != nil {
			break
		}
		for _, fd := range files {
			unix.Close(fd)
		}
		e.mu.Lock()
		if r.Tag == 0 {
			if p := e.processes[r.ID]; p != nil {
				delete(e.processes, r.ID)
				p.finish(r.Status, nil)
			}
		} else if c := e.replies[r.Tag]; c != nil {
			delete(e.replies, r.Tag)
			c <- r
		}
		e.mu.Unlock()
	}
	e.control.conn.Close()
	e.child.Process.Kill()
	state := e.child.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure = fmt.Errorf("the lab's engine ended: %v", state)
	}
	for id, p := range e.processes {
		delete(e.processes, id)
		p.finish(0, e.failure)
	}
	for tag, c := range e.replies {
		delete(e.replies, tag)
		close(c)
	}
	close(e.ended)
}

var errClosed = errors.New("the lab is closed")

func (e *engine) close() error {
	var failed error
	if e.tapped { // wait a limited time for the end of the capture
		give := time.AfterFunc(5*time.Second, func() { e.child.Process.Kill() })
		_, failed = e.ask(request{Op: opFinish})
		if errors.Is(failed, errClosed) {
			failed = nil
		}
		give.Stop()
	}
	e.mu.Lock()
	if e.failure == nil {
		e.failure = errClosed
	}
	e.mu.Unlock()
	e.child.Process.Kill() // its PID namespace ends with it
	<-e.ended
	if e.failure != errClosed {
		return e.failure
	}
	return failed
}

// ask sends a request and waits for its reply.
func (e *engine) ask(r request, files ...*os.File) (reply, error) {
	answer := make(chan reply, 1)
	if err := e.send(&r, answer, nil, files); err != nil {
		return reply{}, err
	}
	got, ok := <-answer
	if !ok {
		return reply{}, e.failure
	}
	if got.Error != "" {
		return got, &Failed{got.Error, got.Hint}
	}
	return got, nil
}

// send registers the waiting call and the new process before the engine can reply.
func (e *engine) send(r *request, answer chan reply, p *Process, files []*os.File) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		return e.failure
	}
	e.tag++
	r.Tag = e.tag
	e.replies[r.Tag] = answer
	if p != nil {
		r.ID = r.Tag
		p.id = r.Tag
		e.processes[p.id] = p
	}
	if err := e.control.send(r, files...); err != nil {
		delete(e.replies, r.Tag)
		if p != nil {
			delete(e.processes, p.id)
		}
		return err
	}
	return nil
}
