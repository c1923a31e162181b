package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Set has programs, maps and links that are released together. The zero value is ready.
type Set struct {
	closers []io.Closer
}

// Close detaches the programs and releases everything, the last first. It may be called again.
func (s *Set) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// maxName is the length of a program's or map's name in bytes (include/uapi/linux/bpf.h,
// BPF_OBJ_NAME_LEN without the terminating 0).
const maxName = 15

// Map creates a map.
func (s *Set) Map(spec ebpf.MapSpec) (*ebpf.Map, error) {
	name := spec.Name
	spec.Name = "fullpipe_" + name
	spec.Name = spec.Name[:min(len(spec.Name), maxName)]
	m, err := ebpf.NewMap(&spec)
	if err != nil {
		return nil, fmt.Errorf("eBPF map %s: %w", name, err)
	}
	s.closers = append(s.closers, m)
	return m, nil
}

// AttachCgroup loads a program and attaches it to the cgroup at a path.
func (s *Set) AttachCgroup(p Program, path string, kind ebpf.ProgramType, at ebpf.AttachType,
	code asm.Instructions) error {
	program, err := s.load(p, ebpf.ProgramSpec{Type: kind, AttachType: at}, code)
	if err != nil {
		return err
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: path, Attach: at, Program: program})
	return s.attached(p, l, err)
}

// AttachIterator loads a program that the kernel runs for each item of one kind, such as "tcp".
func (s *Set) AttachIterator(p Program, kind string, code asm.Instructions) (*link.Iter, error) {
	spec := ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: kind}
	program, err := s.load(p, spec, code)
	if err != nil {
		return nil, err
	}
	iter, err := link.AttachIter(link.IterOptions{Program: program})
	return iter, s.attached(p, iter, err)
}

// AttachTracepoint loads a program for a raw tracepoint with BTF, such as "kfree_skb", and attaches
// it.
func (s *Set) AttachTracepoint(p Program, tracepoint string, code asm.Instructions) error {
	spec := ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: tracepoint}
	program, err := s.load(p, spec, code)
	if err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	return s.attached(p, l, err)
}

func (s *Set) load(p Program, spec ebpf.ProgramSpec, code asm.Instructions) (*ebpf.Program, error) {
	spec.Name = p.Name
	spec.License = p.License
	spec.Instructions = code
	program, err := ebpf.NewProgram(&spec)
	if err != nil {
		return nil, fmt.Errorf("eBPF program %s: %w", p.Hook, err)
	}
	s.closers = append(s.closers, program)
	return program, nil
}

func (s *Set) attached(p Program, l io.Closer, err error) error {
	if err != nil {
		return fmt.Errorf("attach eBPF program %s: %w", p.Hook, err)
	}
	s.closers = append(s.closers, l)
	return nil
}
