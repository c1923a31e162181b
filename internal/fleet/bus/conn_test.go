package bus

import (
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	token := Token{URLs: []string{"https://hub.example.net:8443", "https://192.0.2.1:8443"}, Secret: "s", Pin: "p"}
	got, err := ParseToken(" " + token.String() + "\n")
	if err != nil || strings.Join(got.URLs, " ") != strings.Join(token.URLs, " ") || got.Secret != "s" || got.Pin != "p" {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"empty":             "",
		"another prefix":    "fph2." + token.String()[5:],
		"cut":               token.String()[:20],
		"no secret":         Token{URLs: token.URLs}.String(),
		"no address":        Token{Secret: "s"}.String(),
		"address with http": Token{URLs: []string{"http://hub"}, Secret: "s"}.String(),
		"long":              tokenPrefix + strings.Repeat("A", 9<<10),
	} {
		if _, err := ParseToken(text); err == nil || strings.Contains(err.Error(), `"s"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(Token{URLs: []string{"https://hub:1"}, Secret: "s"}.String())
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || again.Secret != token.Secret {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
	})
}

func TestAgentOf(t *testing.T) {
	for subject, want := range map[string]string{
		Up("anna", ResultKind): "anna", Down("anna", OrderKind): "", "fp.up.anna": "", "fp.up.a.b.c": "", "": "",
	} {
		if got := AgentOf(subject); got != want {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}

// FuzzDecode decodes all messages from arbitrary bytes.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(Hello{V: Version, Port: 5201}))
	f.Add(Encode(Order{V: Version, Run: "x", Role: RoleTest}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []any{&Hello{}, &Welcome{}, &Here{}, &Order{}, &OrderReply{}, &Failed{}, &Served{},
			&Receipt{}, &Stop{}, &JoinRequest{}, &JoinReply{}} {
			if Decode(data, into) == nil {
				Encode(into)
			}
		}
	})
}
