package plan

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

// programs has the code of each language that sets buffers: a function that connects and one that listens. Both set
// the buffers before connect() and listen(), since the handshake fixes the window scale. SEND_BYTES and RECEIVE_BYTES
// are replaced by the sizes. A file of a language and a system, as c-windows.txt, replaces the language's own.
//
//go:embed programs
var programs embed.FS

// program returns the code of a language for a system, "" for any other.
func program(language, system string) string {
	code, err := programs.ReadFile("programs/" + language + "-" + system + ".txt")
	if err != nil {
		code, _ = programs.ReadFile("programs/" + language + ".txt")
	}
	return string(code)
}

// isWindows reports whether a target is any Windows.
func (t Target) isWindows() bool {
	return t.Family == catalog.Windows || t.Family == catalog.Windows2000 || t.Family == catalog.Windows9x
}

// Languages lists the programming languages that Text writes lines in, for any target.
func Languages() []string { return []string{"c", "go", "python", "java", "dotnet", "rust"} }

// code is the lines that set a program's buffers. Linux doubles what a program asks for
// itself and bounds it by its maxima; the other systems grant what is asked for.
func (p *Plan) code(language string) []byte {
	target, _ := ParseTarget(p.Target)
	var send, receive int
	if p.Role.has(Sender) {
		send = p.SendBytes
	}
	if p.Role.has(Receiver) {
		receive = p.WindowBytes
	}
	notes := []string{fmt.Sprintf(
		"a fixed buffer ends automatic sizing: where %s sizes them itself, its maxima are the better way", p.Target)}
	if target.Family == catalog.Linux {
		notes = append(notes, fmt.Sprintf(
			"Linux grants no more than net.core.wmem_max (send %d) and net.core.rmem_max (receive %d)", send, receive))
	}
	if language == "go" && target.isWindows() && !catalog.AtLeast(target.Version, "10.0") {
		notes = append(notes, "Go 1.21 and later need Windows 10 or Server 2016: "+p.Target+" needs an older Go")
	}
	if p.LargeWindows {
		notes = append(notes, "before connect() and listen(): the handshake fixes the window's scale")
	}
	b := &strings.Builder{}
	comment := "//"
	if language == "python" {
		comment = "#"
	}
	b.WriteString(p.headline(comment, false))
	for _, note := range notes {
		b.WriteString(comment + " " + note + "\n")
	}
	system := ""
	switch {
	case target.isWindows():
		system = "windows"
	case target.Family == catalog.AIX && max(send, receive) > model.MaxUnscaled: // no window scaling by default
		system = "aix"
	}
	sizes := strings.NewReplacer("SEND_BYTES", strconv.Itoa(send), "RECEIVE_BYTES", strconv.Itoa(receive))
	b.WriteString("\n" + sizes.Replace(program(language, system)))
	return []byte(b.String())
}
