//go:build linux

package bench

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// fuzzReader is a fuzz target, by package and name, and the party that can write its input.
type fuzzReader struct{ target, writer string }

// foreign are the targets whose input comes from somebody else: a stranger or a far end over the network, another
// user of a shared history, or the author of a file. An attacker can aim, so each target is fuzzed for ten minutes of
// processor time. Targets that have waited equally long run in this order.
var foreign = []fuzzReader{
	{"internal/server FuzzUnauthenticated", "anyone who connects to serve"},
	{"internal/probe FuzzReadMessage", "anyone who has the key, and a server"},
	{"internal/probe FuzzOffer", "anyone who has the key"},
	{"internal/iperf2 FuzzServer", "anyone who connects to serve --iperf2"},
	{"internal/fleet/bus FuzzDecode", "an agent, and a hub"},
	{"internal/fleet/bus/callout FuzzAnswer", "anyone who connects to the NATS server of a fleet"},
	{"internal/fleet/bus FuzzParseToken", "anyone who hands over a token"},
	{"internal/fleet/mesh FuzzParse", "an admin of a fleet, over the API"},
	{"internal/iperf3 FuzzHello", "anyone who sends a UDP datagram to serve"},
	{"internal/iperf3 FuzzFrame", "anyone who connects to serve or iperf3 -s, and a server"},
	{"internal/iperf3 FuzzParams", "anyone who connects to serve or iperf3 -s"},
	{"internal/iperf3 FuzzGate", "anyone who connects to iperf3 -s"},
	{"internal/iperf3 FuzzResults", "a client, and a server"},
	{"internal/web FuzzRequest", "anyone who connects to ui or serve --web"},
	{"internal/web FuzzTold", "the page of whoever tests with serve --web"},
	{"internal/ndt7 FuzzClient", "anyone who connects to serve --web"},
	{"internal/ndt7 FuzzDecode", "anyone who tests with serve --web, and an ndt7 server"},
	{"internal/ndt7 FuzzServer", "an ndt7 server"},
	{"internal/datagram FuzzDatagram", "anyone who sends a UDP datagram with an address that is measured with"},
	{"internal/datagram FuzzReadStatus", "anyone who sends a UDP datagram with an address that is measured with"},
	{"internal/path FuzzIsReply", "anyone who sends an ICMP datagram"},
	{"internal/download FuzzServer", "a web server"},
	{"internal/peer FuzzAwaitReady", "the far host of ssh"},
	{"internal/tune FuzzFarAnswer", "the far host of ssh"},
	{"internal/report FuzzFarEnd", "a far end, of a transfer"},
	{"internal/verdict/live FuzzJudge", "a far end, of a transfer"},
	{"internal/mcp FuzzServer", "an assistant that read foreign text"},
	{"internal/capture FuzzFile", "anyone who hands over a capture"},
	{"internal/capture FuzzDecode", "anyone who sends packets that are captured"},
	{"internal/flow FuzzTable", "anyone who sends packets that are captured"},
	{"internal/flow FuzzOrder", "anyone who hands over a capture"},
	{"internal/turns FuzzTracker", "anyone who sends packets that are captured"},
	{"internal/lost FuzzParsePacket", "anyone whose packets this host drops"},
	{"internal/lost FuzzMatcher", "anyone whose packets this host drops"},
	{"internal/diagnose FuzzCapture", "anyone who hands over a capture"},
	{"internal/render FuzzLine", "all of them: their texts are printed"},
	{"internal/render FuzzShow", "anyone who hands over a document"},
	{"internal/record FuzzImported", "anyone who hands over a document"},
	{"internal/record FuzzAnonymized", "anyone who hands over a document"},
	{"internal/cli/history FuzzEachDocument", "anyone who hands over an exported history"},
	{"internal/cli/audit FuzzPathOf", "anyone who hands over a document"},
	{"internal/cli/input FuzzText", "anyone who hands over a file"},
	{"internal/cli/plan FuzzMeasuredPaths", "anyone who hands over a document"},
	{"internal/cli/apply FuzzPlanFile", "anyone who hands over a plan"},
	{"internal/host FuzzChanges", "anyone who hands over a plan"},
	{"internal/catalog FuzzCheck", "anyone who hands over a plan"},
	{"internal/plan FuzzPasted", "anyone who hands over another program's output"},
	{"internal/audit FuzzParseSnapshot", "anyone who hands over a host's snapshot"},
	{"internal/store FuzzUnpack", "anyone who writes to the same PostgreSQL"},
	{"internal/store FuzzRows", "anyone who writes to the same PostgreSQL"},
}

// own are the targets whose input nobody else writes: this user's command line, configuration and state, root's own,
// the output of this host's kernel and programs, and numbers that a reader in foreign has bounded. Nobody aims, so
// each is fuzzed for two minutes.
var own = []fuzzReader{
	{"internal/catalog FuzzNearest", "this user's command line"},
	{"internal/config FuzzParse", "this user's configuration"},
	{"internal/fleet/agent FuzzParseLimits", "this host's owner"},
	{"internal/config FuzzParseKeys", "this user's file of keys"},
	{"internal/bulk FuzzPressure", "this host's kernel"},
	{"internal/bulk FuzzWriteSize", "numbers of a transfer.Spec that FuzzOffer and FuzzParams bound"},
	{"internal/host FuzzAttributes", "this host's kernel"},
	{"internal/host FuzzJournal", "root, in a directory that nobody else may write to"},
	{"internal/host FuzzRegistry", "this host's registry"},
	{"internal/iperf3 FuzzParseUsers", "this user's file of users"},
	{"internal/link FuzzAckHolder", "programs in this user's lab"},
	{"internal/link FuzzPacket", "programs in this user's lab"},
	{"internal/link FuzzParse", "this user's command line"},
	{"internal/model FuzzTunnel", "this user's command line"},
	{"internal/peer FuzzHostPort", "this user's command line"},
	{"internal/plan FuzzNew", "numbers of a path that FuzzPathOf bounds"},
	{"internal/probe FuzzParseKey", "this user's file of the key; a far host's comes through FuzzAwaitReady"},
	{"internal/recheck FuzzParseHours", "this user's command line"},
	{"internal/cli/recheck FuzzParseCharge", "this user's own files"},
	{"internal/record FuzzIndented", "encoding/json, of this program's own documents"},
	{"internal/sockdiag FuzzMessages", "this host's kernel"},
	{"internal/socket FuzzDecode", "this host's kernel"},
	{"internal/socket FuzzParseRoute", "this user's command line"},
	{"internal/socklist FuzzParse", "this host's kernel"},
	{"internal/socket FuzzTrainSize", "this host's kernel"},
	{"internal/sockops FuzzEstablished", "this host's kernel"},
	{"internal/sockops FuzzOwnCgroup", "this host's kernel"},
	{"internal/sweep FuzzParseSizes", "this user's command line"},
	{"internal/units FuzzParse", "this user's command line"},
	{"internal/waits FuzzParse", "this host's kernel"},
	{"internal/watch FuzzParseTarget", "this user's command line"},
	{"internal/watch/paths FuzzRestore", "this user's own watch"},
}

const (
	timeOfForeign = 10 * time.Minute
	timeOfOwn     = 2 * time.Minute
)

// place returns the index of a target in a list, or -1.
func place(list []fuzzReader, dir, name string) int {
	return slices.IndexFunc(list, func(r fuzzReader) bool { return r.target == dir+" "+name })
}

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets returns the fuzz targets of all packages of this module, in the order of their turns.
func fuzzTargets(t *testing.T) (all []*fuzzTarget) {
	t.Helper()
	for _, root := range []string{"autobuf", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range fuzzFunction.FindAllSubmatch(text, -1) {
				dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
				all = append(all, &fuzzTarget{Dir: dir, Name: string(found[1])})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	codes := map[string]string{}
	for _, target := range all {
		if codes[target.Dir] == "" {
			code, err := codeOf(filepath.Join("..", target.Dir))
			if err != nil {
				t.Fatal(err)
			}
			codes[target.Dir] = code
		}
		target.Code = codes[target.Dir]
	}
	order := slices.Concat(foreign, own)
	slices.SortStableFunc(all, func(a, b *fuzzTarget) int {
		return place(order, a.Dir, a.Name) - place(order, b.Dir, b.Name)
	})
	return all
}

// TestEveryFuzzTargetHasItsTime checks that each fuzz target is in exactly one list, and that both lists name fuzz
// targets only.
func TestEveryFuzzTargetHasItsTime(t *testing.T) {
	has := map[string]int{}
	for _, target := range fuzzTargets(t) {
		has[target.Dir+" "+target.Name]++
	}
	for _, r := range slices.Concat(foreign, own) {
		if has[r.target]--; has[r.target] != 0 {
			t.Errorf("%s is no fuzz target, or is listed twice", r.target)
		}
		delete(has, r.target)
	}
	for target := range has {
		t.Errorf("%s is in neither list: decide who can write its input", target)
	}
}
