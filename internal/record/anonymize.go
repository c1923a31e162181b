package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// naming lists the keys with names of hosts, files or documents, or with text of the user. Their values are replaced
// everywhere in the document.
var naming = map[string]string{
	"peer": "peer", "peers": "peer", "host": "host", "file": "file", "files": "file", "reference": "line",
	"command": "word",
	"host_id": "host-id", "path_key": "path", "id": "id", "test_id": "test", "labels": "label", "prefix": "prefix",
	"via": "via", "dev": "dev", "firewall_rule": "rule", "object": "object",
}

// closed lists the keys with values from closed lists, times or versions.
var closed = map[string]bool{"schema": true, "version": true, "started_at": true, "ended_at": true, "commit": true,
	"limiter": true, "limiters": true,
	"subtype": true, "confidence": true, "candidates": true, "direction": true, "verdict": true, "outcome": true,
	"origin": true, "kind": true,
	"code": true, "cause": true, "slower": true, "role": true, "protocol": true, "method": true, "vantage": true,
	"tap_at": true, "unit": true,
	"congestion": true, "kernel": true, "type": true, "place": true, "side": true, "drop_reason": true, "qdisc": true,
	"watched": true, "counter": true, "grade": true, "system": true}

// addresses matches texts that may be IP addresses; address leaves others unchanged.
var addresses = regexp.MustCompile(`[0-9A-Fa-f:.]*[0-9A-Fa-f][:.][0-9A-Fa-f:.]*`)

// Anonymized returns a copy of a document, samples included, without addresses, names of hosts and files, identifiers
// and labels. Each has the same replacement everywhere in the document. Names inside sentences are replaced if they are
// also the value of a naming key.
func Anonymized(doc Document) (Document, error) { return new(Anonymizer).Document(doc) }

// Document is like Anonymized, but uses the replacements of earlier documents.
func (a *Anonymizer) Document(doc Document) (Document, error) {
	encoded, err := Encode(doc)
	if err != nil {
		return nil, err
	}
	samples, err := EncodeSamples(doc)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(strings.NewReader(string(encoded)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if a.names == nil {
		a.names = map[string]string{}
		a.counts = map[string]int{}
	}
	maps.DeleteFunc(a.names, func(_, made string) bool { // they belong to one document only
		return strings.HasPrefix(made, "id-") || strings.HasPrefix(made, "test-")
	})
	a.collect(tree, "")
	a.order()
	if encoded, err = json.Marshal(a.replace(tree, "")); err != nil {
		return nil, err
	}
	return Decode(encoded, samples)
}

// Anonymizer anonymizes several documents with the same replacements: two paths stay two paths. Its zero value is ready
// to use.
type Anonymizer struct {
	names  map[string]string // replacements by name
	counts map[string]int
	longer []string // the names from the longest down
}

// collect adds the names in a document.
func (a *Anonymizer) collect(v any, kind string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(keysOf(v)) {
			below := kind
			if k := naming[key]; k != "" {
				below = k
			}
			if kind == "label" {
				a.learn(key, "label")
			}
			a.collect(v[key], below)
		}
	case []any:
		for _, one := range v {
			a.collect(one, kind)
		}
	case string:
		if kind != "" && kind != "word" {
			a.learn(v, kind)
		}
	}
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// learn adds the replacement of a name. The scheme of a peer stays: it is the protocol of the test.
func (a *Anonymizer) learn(name, kind string) {
	if _, rest, ok := strings.Cut(name, "://"); ok && kind == "peer" {
		name = rest
	}
	if strings.HasPrefix(name, "lab:") || len(name) < 2 || a.names[name] != "" || a.address(name) != name {
		return
	}
	a.counts[kind]++
	a.names[name] = fmt.Sprintf("%s-%d", kind, a.counts[kind])
}

func (a *Anonymizer) order() {
	a.longer = a.longer[:0]
	for name := range a.names {
		if !strings.HasPrefix(name, addressKey) {
			a.longer = append(a.longer, name)
		}
	}
	slices.SortFunc(a.longer, func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(x, y)) })
}

// replace returns the tree with all names and addresses replaced.
func (a *Anonymizer) replace(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(keysOf(v)) { // in order, so that the numbering is reproducible
			one := v[k]
			if key == "labels" {
				delete(v, k)
				v[a.text(k)] = a.replace(one, "")
				continue
			}
			v[k] = a.replace(one, k)
		}
	case []any:
		if key == "command" {
			return []any{"command"} // its arguments may contain anything
		}
		for i := range v {
			v[i] = a.replace(v[i], key)
		}
	case string:
		if closed[key] {
			return v
		}
		return a.text(v)
	}
	return v
}

// text returns a text with all names and addresses replaced.
func (a *Anonymizer) text(s string) string {
	for _, name := range a.longer {
		s = replaceWord(s, name, a.names[name])
	}
	return addresses.ReplaceAllStringFunc(s, a.address)
}

// replaceWord replaces a name that is not part of a longer word.
func replaceWord(s, name, by string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, name)
		if i < 0 {
			return out.String() + s
		}
		end := i + len(name)
		inside := i > 0 && inWord(s[i-1]) && inWord(name[0]) || end < len(s) && inWord(s[end]) && inWord(name[len(name)-1])
		out.WriteString(s[:i])
		if inside {
			out.WriteString(name)
		} else {
			out.WriteString(by)
		}
		s = s[end:]
	}
}

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// addressKey is the prefix of addresses among the names.
const addressKey = "address "

// address replaces an IP address by a documentation address (RFC 5737, 3849). It returns other texts unchanged.
func (a *Anonymizer) address(s string) string {
	end := ""
	for strings.HasSuffix(s, ".") || strings.HasSuffix(s, ":") && !strings.HasSuffix(s, "::") {
		end = s[len(s)-1:] + end
		s = s[:len(s)-1]
	}
	port := ""
	addr, err := netip.ParseAddr(s)
	if err != nil {
		i := strings.LastIndexByte(s, ':')
		if i < 0 {
			return s + end
		}
		if addr, err = netip.ParseAddr(s[:i]); err != nil {
			return s + end
		}
		port = s[i:]
	}
	if addr.IsLoopback() || addr.IsUnspecified() {
		return s + end
	}
	key := addressKey + addr.String()
	if a.names[key] == "" {
		a.counts["address"]++
		n := a.counts["address"]
		a.names[key] = fmt.Sprintf("192.0.2.%d", min(n, 255))
		if addr.Is6() {
			a.names[key] = fmt.Sprintf("2001:db8::%x", n)
		}
	}
	return a.names[key] + port + end
}
