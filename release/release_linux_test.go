package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// here is the system under test.
var here = target{runtime.GOOS, runtime.GOARCH}

// tree copies the files that git tracks or would add into a new repository.
func tree(t *testing.T, tag string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		from := filepath.Join("..", name)
		info, err := os.Stat(from)
		if err != nil {
			continue // deleted, but still in the index
		}
		text, err := os.ReadFile(from)
		to := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, text, info.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir, tag)
	return dir
}

// sumsOf returns the checksums of all files below a directory.
func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		sums[name], err = sumOf(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestRelease builds a release for this system twice, in different directories and at different times. It checks that
// both are identical, and then tests the files.
func TestRelease(t *testing.T) {
	t.Setenv("GOPROXY", "off") // no step takes anything from the network
	profile := "off"           // CI compiled everything without it already
	if os.Getenv("FULLPIPE_BANK") == "1" {
		profile = "cmd/fullpipe/busy.pgo"
	}
	var outs []string
	for range 2 {
		out := filepath.Join(t.TempDir(), "dist")
		if err := run(t.Context(), []string{"-source", tree(t, "v1.2.3"), "-out", out, "-only", here.String(), "-profile",
			profile}); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	first, second := sumsOf(t, outs[0]), sumsOf(t, outs[1])
	if len(first) < 17 || !maps.Equal(first, second) {
		for _, name := range slices.Sorted(maps.Keys(first)) {
			if first[name] != second[name] {
				t.Errorf("%s differs from build to build", name)
			}
		}
		t.Fatalf("%d and %d files", len(first), len(second))
	}
	t.Run("sums", func(t *testing.T) { checkSums(t, outs[0], first) })
	for _, p := range products {
		t.Run("image of "+p.name, func(t *testing.T) { checkImage(t, p, filepath.Join(outs[0], p.name+"-1.2.3-oci")) })
	}
	t.Run("materials", func(t *testing.T) {
		checkMaterials(t, filepath.Join(outs[0], "fullpipe-1.2.3-linux-"+here.arch+".cdx.json"), "fullpipe-ebpf", "modernc.org/sqlite",
			"github.com/spf13/cobra", "go")
		checkMaterials(t, filepath.Join(outs[0], "fullpipe-hub-1.2.3-linux-"+here.arch+".cdx.json"), "fullpipe-ebpf", "modernc.org/sqlite",
			"github.com/nats-io/nats-server/v2", "go")
	})
	t.Run("hub", func(t *testing.T) { checkHub(t, outs[0]) })
	t.Run("archive", func(t *testing.T) {
		checkArchive(t, filepath.Join(outs[0], "fullpipe-1.2.3-linux-"+here.arch+".tar.gz"))
	})
	t.Run("rpm", func(t *testing.T) { checkRPM(t, one(t, outs[0], "fullpipe-1*.rpm")) })
	t.Run("deb", func(t *testing.T) { checkInstall(t, one(t, outs[0], "fullpipe_*.deb")) })
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

func checkSums(t *testing.T, dir string, sums map[string]string) {
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		lines++
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sums[filepath.FromSlash(name)] != sum {
			t.Errorf("%s is not the sum of %s", sum, name)
		}
	}
	if lines != len(sums)-1 {
		t.Errorf("%d sums of %d files", lines, len(sums)-1)
	}
}

// checkImage resolves the layout like a client that pulls it, down to the program, and runs the program.
func checkImage(t *testing.T, p product, dir string) {
	read := func(d descriptor, into any) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(d.Digest, "sha256:")))
		sum := sha256.Sum256(text)
		if err != nil || len(text) != d.Size || "sha256:"+hex.EncodeToString(sum[:]) != d.Digest {
			t.Fatalf("%s: %v, %d bytes", d.Digest, err, len(text))
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var outer, inner index
	var m manifest
	var config imageConfig
	if err := json.Unmarshal(text, &outer); err != nil || len(outer.Manifests) != 1 ||
		outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%v: %s", err, text)
	}
	read(outer.Manifests[0], &inner)
	read(inner.Manifests[0], &m)
	read(m.Config, &config)
	layer := read(m.Layers[0], nil)
	if config.Architecture != here.arch || config.OS != "linux" || !slices.Equal(config.Config.Entrypoint,
		[]string{"/usr/bin/" + p.name}) {
		t.Errorf("%+v", config)
	}
	packed, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	archive := tar.NewReader(io.TeeReader(packed, sum))
	header, err := archive.Next()
	if err != nil || header.Name != "usr/bin/"+p.name || header.Mode != 0o755 {
		t.Fatalf("%+v, %v", header, err)
	}
	program := filepath.Join(t.TempDir(), "fullpipe")
	text, err = io.ReadAll(archive)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, archive)
	io.Copy(sum, packed)
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer unpacked is %s", got)
	}
	out, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), p.name) || !strings.Contains(string(out), "v1.2.3") {
		t.Errorf("%v: %s", err, out)
	}
	if libraries, err := exec.Command("ldd", program).CombinedOutput(); err == nil {
		t.Errorf("the image has no libraries, but its program needs some: %s", libraries)
	}
}

func checkMaterials(t *testing.T, name string, modules ...string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
		t.Fatalf("%v: %.200s", err, text)
	}
	for _, module := range modules {
		if !slices.ContainsFunc(bill.Components, func(c component) bool { return c.Name == module && c.Version != "" }) {
			t.Errorf("%s is missing in the bill of materials", module)
		}
	}
	if slices.ContainsFunc(bill.Components, func(c component) bool { return strings.Contains(c.Name, "nfpm") }) {
		t.Error("the packaging library is in the bill of materials of the program")
	}
}

// mostProgramBytes limits the growth of a program, stripped.
const mostProgramBytes = 35_000_000

// callsByName are the reflection calls that make the linker keep every exported method of every type, about 3.5 MB.
var callsByName = []string{"reflect.Value.MethodByName", "text/template.(*state).evalField"}

// checkProgram checks a program's size and that it calls no method by name. A stripped program still has the names of
// its functions, for stack traces.
func checkProgram(t *testing.T, archive, name string) {
	program, err := exec.Command("tar", "-xzOf", archive, name+"-1.2.3-linux-"+here.arch+"/"+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	if here.arch == "amd64" && len(program) > mostProgramBytes {
		t.Errorf("%s has %d bytes, at most %d", name, len(program), mostProgramBytes)
	}
	for _, call := range callsByName {
		if bytes.Contains(program, []byte(call)) {
			t.Errorf("%s has %s: the linker keeps every exported method. `go build -ldflags=-dumpdep ./cmd/%s 2>&1 | grep "+
				"MethodByName` names the caller; pages are templ components, not html/template", name, call, name)
		}
	}
}

func checkArchive(t *testing.T, name string) {
	checkProgram(t, name, "fullpipe")
	out, err := exec.Command("tar", "-tzf", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fullpipe", "LICENSE", "man1/fullpipe.1", "man1/fullpipe-measure.1", "bash/fullpipe",
		"zsh/_fullpipe", "fish/fullpipe.fish"} {
		if !strings.Contains(string(out), "fullpipe-1.2.3-linux-"+here.arch+"/"+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	page, err := exec.Command("tar", "-xzOf", name, "fullpipe-1.2.3-linux-"+here.arch+"/man1/fullpipe-measure.1").Output()
	if err != nil || !strings.Contains(string(page), ".SH EXIT STATUS") || !strings.Contains(string(page), `\fB130\fP`) ||
		!strings.Contains(string(page), ".SH EXAMPLE") {
		t.Errorf("%v: %s", err, page)
	}
}

// checkHub checks the hub's program, and the files of its archive and packages.
func checkHub(t *testing.T, dir string) {
	checkProgram(t, one(t, dir, "fullpipe-hub-1.2.3-linux-*.tar.gz"), "fullpipe-hub")
	archive, err := exec.Command("tar", "-tzf", one(t, dir, "fullpipe-hub-1.2.3-linux-*.tar.gz")).Output()
	if err != nil {
		t.Fatal(err)
	}
	deb, err := exec.Command("dpkg-deb", "--contents", one(t, dir, "fullpipe-hub_*.deb")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		of, text string
		want     []string
	}{
		{"the archive", string(archive), []string{"/fullpipe-hub\n", "/man1/fullpipe-hub.1\n", "/man1/fullpipe-hub-serve.1\n",
			"/bash/fullpipe-hub\n", "/zsh/_fullpipe-hub\n", "/fish/fullpipe-hub.fish\n", "/LICENSE\n"}},
		{"the deb", string(deb), []string{"./usr/bin/fullpipe-hub\n", "./usr/share/man/man1/fullpipe-hub-mesh-check.1.gz\n",
			"./usr/lib/systemd/system/fullpipe-hub.service\n", "./usr/share/doc/fullpipe-hub/copyright\n",
			"./usr/share/bash-completion/completions/fullpipe-hub\n"}},
	} {
		for _, want := range list.want {
			if !strings.Contains(list.text, want) {
				t.Errorf("%s has no %s in\n%s", list.of, want, list.text)
			}
		}
		if strings.Contains(list.text, "fullpipe-measure") || strings.Contains(list.text, "/fullpipe\n") {
			t.Errorf("%s has files of the other program:\n%s", list.of, list.text)
		}
	}
}

func checkRPM(t *testing.T, name string) {
	out, err := exec.Command(testenv.Program(t, testenv.RPM), "-qp", "--queryformat",
		"%{NAME} %{VERSION} %{LICENSE}\n", "--list", "--scripts", name).CombinedOutput()
	for _, want := range []string{"fullpipe 1.2.3 Apache-2.0", "/usr/bin/fullpipe\n", "/usr/share/man/man1/fullpipe.1.gz\n",
		"/usr/lib/systemd/system/fullpipe-watch.service\n", "/usr/lib/systemd/system/fullpipe-agent.service\n", "/usr/share/fullpipe/watch/grafana.json\n",
		"systemd-sysusers fullpipe.conf"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
}
