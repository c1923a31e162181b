package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// Layout returns the offsets of members of the kernel's structures from the kernel's own
// description (BTF).
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

// At returns the offset in bytes of a member, or of a member of that member, and so on. Err reports
// a missing one.
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

// TracepointArguments returns the number of arguments of a raw tracepoint, 0 for one that the
// kernel does not have.
func (l *Layout) TracepointArguments(name string) int {
	var typedef *btf.Typedef
	if err := l.kernel.TypeByName("btf_trace_"+name, &typedef); err != nil {
		return 0
	}
	if pointer, ok := typedef.Type.(*btf.Pointer); ok {
		if function, ok := pointer.Target.(*btf.FuncProto); ok {
			return len(function.Params) - 1 // the first is the tracepoint's own data
		}
	}
	return 0
}

// Enum returns the names of an enumeration's values; nil if the kernel does not have it.
func (l *Layout) Enum(name string) map[uint32]string {
	var enum *btf.Enum
	if err := l.kernel.TypeByName(name, &enum); err != nil {
		return nil
	}
	names := map[uint32]string{}
	for _, v := range enum.Values {
		names[uint32(v.Value)] = v.Name
	}
	return names
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
