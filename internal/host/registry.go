package host

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Types of registry values (winnt.h).
const (
	regSZ     = 1
	regBinary = 3
	regDword  = 4
)

// registryKeys are the keys below HKEY_LOCAL_MACHINE that may be changed. A plan from a file must not reach others.
var registryKeys = []string{
	`SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`,
	`SYSTEM\CurrentControlSet\Services\AFD\Parameters`,
	`SYSTEM\CurrentControlSet\Services\VxD\MSTCP`,
	`SYSTEM\CurrentControlSet\Services\Class\NetTrans`,
}

// registryName splits HKEY_LOCAL_MACHINE\KEY\VALUE into the key below the root and the value's name.
func registryName(name string) (key, value string, err error) {
	rest, ok := strings.CutPrefix(name, `HKEY_LOCAL_MACHINE\`)
	at := strings.LastIndexByte(rest, '\\')
	if !ok || at < 0 || at == len(rest)-1 || strings.ContainsRune(name, 0) {
		return "", "", fmt.Errorf(`%q does not name a value below HKEY_LOCAL_MACHINE`, name)
	}
	key = rest[:at]
	value = rest[at+1:]
	allowed := slices.ContainsFunc(registryKeys, func(prefix string) bool {
		return len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix) && (len(key) == len(prefix) ||
			key[len(prefix)] == '\\')
	})
	if !allowed {
		return "", "", fmt.Errorf("%s is not one of the network's keys", key)
	}
	return key, value, nil
}

// registryText returns a value in the format of .reg files, so that every type can be restored byte for byte:
// dword:0000ffff, "text", hex:01,02 or hex(7):01,02.
func registryText(kind uint32, data []byte) string {
	switch {
	case kind == regDword && len(data) == 4:
		return fmt.Sprintf("dword:%08x", binary.LittleEndian.Uint32(data))
	case kind == regSZ:
		if text, ok := fromUTF16(data); ok {
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		}
	}
	digits := make([]string, len(data))
	for i, b := range data {
		digits[i] = fmt.Sprintf("%02x", b)
	}
	if kind == regBinary {
		return "hex:" + strings.Join(digits, ",")
	}
	return fmt.Sprintf("hex(%x):%s", kind, strings.Join(digits, ","))
}

// parseRegistry parses the format of registryText.
func parseRegistry(text string) (kind uint32, data []byte, err error) {
	bad := fmt.Errorf(`%.60q is not a registry value (dword:0000ffff, "text" or hex:01,02)`, text)
	if digits, ok := strings.CutPrefix(text, "dword:"); ok {
		n, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || len(digits) > 8 {
			return 0, nil, bad
		}
		return regDword, binary.LittleEndian.AppendUint32(nil, uint32(n)), nil
	}
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		plain, ok := unquote(text[1 : len(text)-1])
		if !ok {
			return 0, nil, bad
		}
		return regSZ, toUTF16(plain), nil
	}
	rest, ok := strings.CutPrefix(text, "hex")
	if !ok {
		return 0, nil, bad
	}
	head, digits, ok := strings.Cut(rest, ":")
	if !ok {
		return 0, nil, bad
	}
	kind = regBinary
	if head != "" {
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(head, "("), ")"), 16, 32)
		if err != nil || !strings.HasPrefix(head, "(") || !strings.HasSuffix(head, ")") {
			return 0, nil, bad
		}
		kind = uint32(n)
	}
	if digits == "" {
		return kind, []byte{}, nil
	}
	for _, pair := range strings.Split(digits, ",") {
		b, err := hex.DecodeString(pair)
		if err != nil || len(b) != 1 {
			return 0, nil, bad
		}
		data = append(data, b[0])
	}
	return kind, data, nil
}

func unquote(text string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"' || c == 0:
			return "", false
		case c == '\\':
			i++
			if i == len(text) || text[i] != '\\' && text[i] != '"' {
				return "", false
			}
			c = text[i]
		}
		out.WriteByte(c)
	}
	return out.String(), true
}

// toUTF16 returns a REG_SZ's data with its final 0.
func toUTF16(text string) []byte {
	var data []byte
	for _, unit := range append(utf16.Encode([]rune(text)), 0) {
		data = binary.LittleEndian.AppendUint16(data, unit)
	}
	return data
}

// fromUTF16 decodes the data of toUTF16. Other data, such as without the final 0, is not ok.
func fromUTF16(data []byte) (string, bool) {
	if len(data)%2 != 0 {
		return "", false
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	if len(units) == 0 || units[len(units)-1] != 0 {
		return "", false
	}
	text := string(utf16.Decode(units[:len(units)-1]))
	return text, slices.Equal(toUTF16(text), data) && !strings.ContainsRune(text, 0)
}

// registryNormal returns a value in the form of registryText.
func registryNormal(value string) string {
	kind, data, err := parseRegistry(value)
	if err != nil {
		return value
	}
	return registryText(kind, data)
}
