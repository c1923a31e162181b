package catalog

import "testing"

func TestEveryProgramIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Programs() {
		if seen[p.Name] || p.What == "" || p.Per == "" || p.Raise == "" || p.Source == "" || p.Bytes < 0 ||
			p.ReceiveDatagrams < 0 || p.SendDatagrams < 0 {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
	}
	for _, name := range []string{"ssh", "HTTP2", "grpc", "smb", "nfs", "rsync", "s3", "kafka", "postgresql", "quic-go",
		"msquic", "nginx-quic"} {
		if _, ok := FindProgram(name); !ok {
			t.Errorf("%s is not known", name)
		}
	}
}

func TestProgramAt(t *testing.T) {
	for _, c := range []struct {
		port  uint16
		bytes float64
		want  string
	}{{22, 2_099_924, "ssh"}, {22, 2_163_616, "ssh"}, {22, 1_000_000, ""}, {2222, 2_099_924, ""}, {445, 8_400_000, "smb"},
		{22, 0, ""}} {
		if p, found := ProgramAt(c.port, c.bytes); p.Name != c.want || found != (c.want != "") {
			t.Errorf("port %d, %.0f bytes: %q", c.port, c.bytes, p.Name)
		}
	}
}
