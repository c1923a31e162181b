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
