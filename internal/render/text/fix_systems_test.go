package text

import (
	"regexp"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// onlyLinux matches names that no other system has.
var onlyLinux = regexp.MustCompile(`net\.ipv4|net\.core|\bss -|\btc |\bip (route|tcp)|nstat |TCP_WINDOW_CLAMP|` +
	`SO_MAX_PACING_RATE|TCP_CONGESTION|congctl|initrwnd|initcwnd\b|lab:`)

// linuxSource matches documents of Linux alone.
var linuxSource = regexp.MustCompile(`ip-sysctl|tcp\(7\) tcp_|socket\(7\)|\bss\(8\)|\btc\(8\)|\bip-\w+\(8\)|LOWAT;|TCP_INFO`)

func TestFixSentence_SpeaksTheHostsSystem(t *testing.T) {
	facts := advice.Facts{GoodputBps: 5e6, PathBps: 50e6, Bytes: 1e6, DurationS: 1, RTTS: 0.1, MSSBytes: 1448,
		PassingMSS: 1360, Congestion: "cubic"}
	for _, system := range advice.Systems() {
		if system == advice.Linux {
			continue
		}
		facts.Sender = system
		facts.Receiver = system
		for _, name := range verdict.Names() {
			for _, subtype := range append(verdict.Subtypes(name), "") {
				for _, confidence := range []verdict.Confidence{verdict.High, verdict.Low} {
					v := verdict.Verdict{Limiter: name, Subtype: subtype, Confidence: confidence, Candidates: verdict.Names()[:9]}
					fixes := advice.Fixes(v, facts)
					if len(fixes) == 0 {
						t.Errorf("%s, %s (%s): nothing to do", system, name, subtype)
					}
					for _, f := range fixes {
						said := FixSentence(f) + " " + briefFix(&f)
						if found := linuxSource.FindString(f.Source); found != "" {
							t.Errorf("%s: %q is Linux's: the source of %s is %s", system, found, f.Action, f.Source)
						}
						for _, s := range f.Settings {
							said += " " + s.Name + " " + s.Where
						}
						if found := onlyLinux.FindString(said); found != "" {
							t.Errorf("%s, %s (%s): %q is Linux's: %s", system, name, subtype, found, said)
						}
						if f.Action.Specific() && FixSentence(f) == imperatives[f.Action] && f.Action != advice.LowWater {
							t.Errorf("%s: no words of its own for %s", system, f.Action)
						}
					}
				}
			}
		}
	}
}

func TestExplainLimiter_SpeaksTheSystem(t *testing.T) {
	for _, system := range advice.Systems() {
		for _, name := range verdict.Names() {
			d, ok := ExplainLimiter(string(name), system)
			said := d.Description + d.Looks + d.Sure
			for _, f := range d.Fix {
				said += f.Text
			}
			if found := onlyLinux.FindString(said); !ok || found != "" && system != advice.Linux {
				t.Errorf("%s on %s: %q is Linux's: %s", name, system, found, said)
			}
		}
	}
}
