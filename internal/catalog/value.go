package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tunable reports whether the parameter is a setting of a running system that can be written by its name and read back:
// no socket option, no device, no value of a policy.
func (p Parameter) Tunable() bool {
	switch p.Kind {
	case "sysctl", "route attribute", "registry value", "netsh":
		return true
	case "cmdlet parameter":
		return !strings.Contains(p.Where, "(read only)")
	}
	return false
}

// fields is how many numbers the value has: three, as tcp_rmem, or one.
func (p Parameter) fields() int {
	switch p.Type {
	case "min default max", "low pressure high":
		return 3
	}
	return 1
}

// bounds is a span of permitted numbers, both ends included.
type bounds struct{ least, most int64 }

var (
	spanText  = regexp.MustCompile(`(?:^|[ ;,])(-?\w+) (?:to|or) (-?\w+|the)`)
	nameValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)
)

// spans reads the numbers that Range permits; nil where it names none.
func (p Parameter) spans() []bounds {
	var all []bounds
	for _, m := range spanText.FindAllStringSubmatch(p.Range, -1) {
		least, err := strconv.ParseInt(m[1], 0, 64)
		if err != nil {
			continue
		}
		most, err := strconv.ParseInt(m[2], 0, 64)
		if err != nil {
			most = 1<<32 - 1 // "88 to the link's MTU"
		}
		all = append(all, bounds{least, most})
	}
	return all
}

// Check returns an error if a value does not fit the parameter's type and range.
func (p Parameter) Check(value string) error {
	wrong := func(why string) error { return fmt.Errorf("%s: %.60q is not %s", p.Name, value, why) }
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return wrong("plain text on one line")
	}
	if p.Type == "name" {
		if !nameValue.MatchString(value) {
			return wrong("a name")
		}
		names := p.names()
		is := func(name string) bool { return strings.EqualFold(name, value) }
		if len(names) > 0 && !slices.ContainsFunc(names, is) {
			return wrong("one of " + p.Range)
		}
		return nil
	}
	fields := strings.Fields(value)
	if len(fields) != p.fields() {
		return wrong(p.Type)
	}
	before := int64(-1 << 63)
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 0, 64)
		if err != nil {
			return wrong(p.Type)
		}
		if !p.permits(n) {
			return wrong("within " + p.Bounds())
		}
		if n < before {
			return wrong(p.Type + ", each at least the one before it")
		}
		before = n
	}
	return nil
}

// maxUnlisted is the largest number of a parameter whose range the catalog does not know.
const maxUnlisted = 1<<32 - 1

// Bounds says which numbers a parameter takes.
func (p Parameter) Bounds() string {
	switch {
	case p.Range != "":
		return p.Range
	case p.Type == "boolean":
		return "0 to 1"
	}
	return fmt.Sprintf("0 to %d", int64(maxUnlisted))
}

func (p Parameter) permits(n int64) bool {
	spans := p.spans()
	if len(spans) == 0 {
		spans = []bounds{{0, maxUnlisted}}
		if p.Type == "boolean" {
			spans = []bounds{{0, 1}}
		}
	}
	return slices.ContainsFunc(spans, func(b bounds) bool { return n >= b.least && n <= b.most })
}

// names are the words that Range lists; nil where it lists none.
func (p Parameter) names() []string {
	if !strings.Contains(p.Range, ", ") {
		return nil
	}
	var names []string
	for _, part := range strings.FieldsFunc(p.Range, func(r rune) bool { return r == ',' || r == ';' }) {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		names = append(names, name)
	}
	return names
}
