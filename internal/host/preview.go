package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// preview reads the values that the changes would replace, computes the new ones, and marks changes that are already
// made. Apply calls it under the lock.
func (c Config) preview(changes []Change) ([]Did, error) {
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
		if equal(old, value) {
			did.Outcome = Unchanged
		}
		dids = append(dids, did)
	}
	return dids, nil
}

// raised returns the present value with each number raised to at least the requested one.
func raised(change Change, old *string) (*string, error) {
	if change.Value == nil {
		return nil, fmt.Errorf("%s: no value to raise it to", change.Name)
	}
	if old == nil {
		return change.Value, nil
	}
	numbers := strings.Fields(*old)
	wanted := strings.Fields(*change.Value)
	if len(numbers) != len(wanted) {
		return nil, fmt.Errorf("%s is %q and cannot become %q: another count of numbers", change.Name, *old, *change.Value)
	}
	for i := range numbers {
		now, err := strconv.ParseInt(numbers[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is %q: %w", change.Name, *old, err)
		}
		minimum, err := strconv.ParseInt(wanted[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.Name, err)
		}
		if now < minimum {
			numbers[i] = wanted[i]
		}
	}
	value := strings.Join(numbers, " ")
	return &value, nil
}

// persistent returns a file of sysctl.d(5) with a line for each sysctl of dids, in place of its lines for them. Its
// other lines stay.
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
		lines = slices.DeleteFunc(lines, func(line string) bool { return sysctlOf(line) == d.Name })
		lines = append(lines, d.Name+" = "+*d.New)
	}
	text := strings.Join(lines, "\n") + "\n"
	return &text, nil
}

// sysctlOf returns the sysctl that a line of sysctl.d(5) sets; "" for a comment. A leading "-" means to ignore errors,
// and slashes may replace dots.
func sysctlOf(line string) string {
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

// MovedError reports that a setting changed after a person confirmed the change.
type MovedError struct {
	Name       string
	Shown, Now *string // the value that would be replaced
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("nothing was changed: %s was %s when the change was shown and is %s now",
		e.Name, Text(e.Shown), Text(e.Now))
}

// Try returns the remedy.
func (e *MovedError) Try() string { return "run it again: it shows the present values" }

// Agreed compares the pending changes with those that a person confirmed. It returns a MovedError for a difference. The
// file of Persist is confirmed with its sysctls.
func Agreed(shown, now []Did) error {
	for _, d := range now {
		if d.Outcome == Unchanged || d.Kind == File {
			continue
		}
		at := slices.IndexFunc(shown, func(s Did) bool { return s.Kind == d.Kind && s.Name == d.Name })
		if at < 0 {
			return &MovedError{d.Name, nil, d.Old}
		}
		if s := shown[at]; !equal(s.Old, d.Old) || !equal(s.New, d.New) {
			return &MovedError{d.Name, s.Old, d.Old}
		}
	}
	return nil
}

// BufferBytes returns the memory of one connection with full buffers after the changes of buffers' maxima.
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
