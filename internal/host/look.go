package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// look reads what each change would replace, decides what it becomes and marks those that
// hold already. Apply calls it under the lock.
func (c Config) look(changes []Change) ([]Did, error) {
	dids := make([]Did, 0, len(changes))
	for i, change := range changes {
		if slices.ContainsFunc(changes[:i], func(o Change) bool { return o.Kind == change.Kind && o.Name == change.Name }) {
			return nil, fmt.Errorf("%s is asked for twice", change.Name)
		}
		s, err := c.store(change.Kind)
		if err != nil {
			return nil, err
		}
		old, err := s.read(change.Name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", change.Name, err)
		}
		value := change.Value
		switch {
		case change.Persist:
			value, err = persistent(old, dids)
		case change.Raise:
			value, err = raised(change, old)
		}
		if err != nil {
			return nil, err
		}
		if value != nil {
			normal := s.normal(*value)
			value = &normal
		}
		did := Did{Kind: change.Kind, Name: change.Name, Old: old, New: value, Took: old}
		if same(old, value) {
			did.Outcome = Unchanged
		}
		dids = append(dids, did)
	}
	return dids, nil
}

// raised is the present value with each number that is below the asked one raised to it.
func raised(change Change, old *string) (*string, error) {
	if change.Value == nil {
		return nil, fmt.Errorf("%s: nothing says what to raise it to", change.Name)
	}
	if old == nil {
		return change.Value, nil
	}
	has := strings.Fields(*old)
	wants := strings.Fields(*change.Value)
	if len(has) != len(wants) {
		return nil, fmt.Errorf("%s is %q and shall be %q: not as many numbers", change.Name, *old, *change.Value)
	}
	for i := range has {
		now, err := strconv.ParseInt(has[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is %q: %w", change.Name, *old, err)
		}
		least, err := strconv.ParseInt(wants[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.Name, err)
		}
		if now < least {
			has[i] = wants[i]
		}
	}
	value := strings.Join(has, " ")
	return &value, nil
}

// persistent is a file of sysctl.d(5) with a line for each sysctl of dids in place of the
// lines that it has for them. What else the file holds stays.
func persistent(old *string, dids []Did) (*string, error) {
	lines := []string{"# Written by fullpipe; fullpipe undo takes it back."}
	if old != nil && strings.TrimSpace(*old) != "" {
		lines = strings.Split(strings.TrimRight(*old, "\n"), "\n")
	}
	for _, d := range dids {
		if d.Kind != Sysctl || d.New == nil {
			return nil, &UnsettableError{d.Name, "only sysctls can persist this way"}
		}
		if strings.ContainsAny(*d.New, "\n\r") {
			return nil, &UnsettableError{d.Name, fmt.Sprintf("%q is more than one line", *d.New)}
		}
		lines = slices.DeleteFunc(lines, func(line string) bool { return lineOf(line) == d.Name })
		lines = append(lines, d.Name+" = "+*d.New)
	}
	text := strings.Join(lines, "\n") + "\n"
	return &text, nil
}

// lineOf is the sysctl that a line of sysctl.d(5) sets; "" for a comment. A leading "-"
// asks to ignore errors, and slashes may stand for dots.
func lineOf(line string) string {
	name, _, set := strings.Cut(line, "=")
	name = strings.TrimPrefix(strings.TrimSpace(name), "-")
	if !set || strings.HasPrefix(name, "#") || strings.HasPrefix(name, ";") {
		return ""
	}
	if slash := strings.IndexByte(name, '/'); slash >= 0 && !strings.Contains(name[:slash], ".") {
		name = strings.ReplaceAll(name, "/", ".")
	}
	return strings.TrimSpace(name)
}

// MovedError says that the host is no longer as it was shown to the person who agreed.
type MovedError struct {
	Name       string
	Shown, Now *string // the value that would be replaced
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("nothing was changed: %s was %s when the change was shown and is %s now",
		e.Name, Text(e.Shown), Text(e.Now))
}

// Try says what to do.
func (e *MovedError) Try() string { return "run it again: it shows what holds now" }

// Agreed holds what Apply would change now against what a person was shown: a MovedError
// when it is not the same. A file of Persist is agreed to by its sysctls.
func Agreed(shown, now []Did) error {
	for _, d := range now {
		if d.Outcome == Unchanged || d.Kind == File {
			continue
		}
		at := slices.IndexFunc(shown, func(s Did) bool { return s.Kind == d.Kind && s.Name == d.Name })
		if at < 0 {
			return &MovedError{d.Name, nil, d.Old}
		}
		if s := shown[at]; !same(s.Old, d.Old) || !same(s.New, d.New) {
			return &MovedError{d.Name, s.Old, d.Old}
		}
	}
	return nil
}

// BufferBytes is what one connection with full buffers takes of the host's memory by those
// of dids that change a buffer's maximum.
func BufferBytes(dids []Did) int64 {
	var send, receive int64
	for _, d := range dids {
		if d.Kind != Sysctl || d.New == nil || d.Outcome == Unchanged {
			continue
		}
		n, err := strconv.ParseInt((*d.New)[strings.LastIndexByte(*d.New, ' ')+1:], 10, 64)
		if err != nil {
			continue
		}
		switch d.Name {
		case "net.ipv4.tcp_rmem", "net.core.rmem_max", "net.core.rmem_default":
			receive = max(receive, n)
		case "net.ipv4.tcp_wmem", "net.core.wmem_max", "net.core.wmem_default":
			send = max(send, n)
		}
	}
	return send + receive
}
