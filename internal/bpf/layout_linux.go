package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// Layout returns the offsets of members of the kernel's structures from the kernel's own description (BTF).
type Layout struct {
	kernel *btf.Spec
	err    error
}

// KernelLayout reads the running kernel's description.
func KernelLayout() (*Layout, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, err
	}
	return &Layout{kernel: kernel}, nil
}

// Err returns what At did not find, or nil.
func (l *Layout) Err() error { return l.err }

// At returns the offset in bytes of a member, or of a member of that member, and so on. Err reports a missing one.
func (l *Layout) At(of string, names ...string) int16 {
	var s *btf.Struct
	if err := l.kernel.TypeByName(of, &s); err != nil {
		l.err = errors.Join(l.err, err)
		return 0
	}
	offset := uint32(0)
	members := s.Members
	for _, name := range names {
		bytes, kind, ok := memberAt(members, name)
		offset += bytes
		if !ok || offset >= 1<<15 {
			l.err = errors.Join(l.err, fmt.Errorf("struct %s has no %s", of, name))
			return 0
		}
		members = membersOf(kind)
	}
	return int16(offset)
}

// memberAt finds a member, also in those without a name: its offset in bytes, and its type.
func memberAt(members []btf.Member, name string) (bytes uint32, kind btf.Type, ok bool) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset.Bytes(), m.Type, true
		}
		if m.Name != "" {
			continue
		}
		bytes, kind, ok = memberAt(membersOf(m.Type), name)
		if ok {
			return m.Offset.Bytes() + bytes, kind, true
		}
	}
	return 0, nil, false
}

func membersOf(kind btf.Type) []btf.Member {
	switch t := btf.UnderlyingType(kind).(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}
