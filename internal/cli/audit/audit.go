// Package audit is the command audit: it judges hosts' settings.
package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type flags struct {
	rate        units.Rate
	rtt         cmdflag.Duration
	connections int
	path        string
	collect     bool
	collector   string
	app         string
}

// New returns the command audit.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "audit [SNAPSHOT...]",
		Short: "find settings of a host that limit TCP, worst first",
		Long: `audit judges this host's settings, or those in saved snapshots of other
hosts. It changes nothing. For a path (--rate and --rtt, or --path with the output of tune
--json), each finding shows the rate that its setting allows, and the finding with the
lowest rate comes first.

--collect writes a snapshot. On a host without fullpipe run a script that writes the
snapshot: --collector sh prints one for Linux, macOS and FreeBSD, --collector powershell one
for Windows 7 and later, --collector batch one for Windows 2000 to Server 2008 R2. audit
also reads .reg files and the output of "netsh int tcp show global" and Get-NetTCPSetting.`,
		Example: `  fullpipe audit --rate 1gbit --rtt 100ms
  fullpipe audit --collect > host.json
  fullpipe audit --collector sh > collect.sh`,
		RunE: func(cmd *cobra.Command, args []string) error { return runAudit(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.Var(&f.rate, "rate", "rate of the path at the IP layer, for example 1gbit")
	flags.Var(&f.rtt, "rtt", "minimum RTT of the path, for example 100ms")
	flags.IntVar(&f.connections, "connections", 1, "bulk connections at one time")
	flags.StringVar(&f.path, "path", "", "read the path from a file that tune --json or plan "+
		"--json wrote")
	flags.StringVar(&f.app, "app", "", "also check the UDP buffers that this program requests: "+
		"quic-go")
	flags.BoolVar(&f.collect, "collect", false, "write this host's snapshot as JSON, without judging it")
	flags.StringVar(&f.collector, "collector", "", "print the collector script: sh, powershell or batch")
	return cmd
}

func runAudit(cmd *cobra.Command, f *flags, files []string) error {
	if f.collector != "" {
		return printCollector(cmd, f.collector)
	}
	if f.collect {
		s, err := host.Snapshot()
		if err != nil {
			return err
		}
		return present.JSON(cmd.OutOrStdout(), s)
	}
	path, err := f.judgedPath(cmd)
	if err != nil {
		return err
	}
	snapshots, err := openSnapshots(cmd, files)
	if err != nil {
		return err
	}
	doc := &record.Audit{Header: present.Header(cmd), RateBps: path.RateBps, RTTS: path.RTT.Seconds()}
	for i, s := range snapshots {
		file := ""
		if len(files) > 0 {
			file = files[i]
		}
		doc.Hosts = append(doc.Hosts, report.AuditHost(file, s, audit.Judge(s, path)))
	}
	err = present.Document(cmd, doc)
	if err == nil && doc.Bad() {
		return exit.Status(exit.No)
	}
	return err
}

// printCollector prints the collector script of a name. Lines of the batch file end in CRLF.
func printCollector(cmd *cobra.Command, name string) error {
	script, known := map[string]string{"sh": audit.CollectShell, "powershell": audit.CollectPowerShell,
		"batch": audit.CollectBatch}[name]
	if !known {
		return exit.Usage("--collector", fmt.Sprintf("unknown script %q", name), "sh, powershell or batch")
	}
	_, err := io.WriteString(console.Unescaped(cmd), script)
	return err
}

func openSnapshots(cmd *cobra.Command, files []string) ([]*audit.Snapshot, error) {
	if len(files) == 0 {
		s, err := host.Snapshot()
		return []*audit.Snapshot{s}, err
	}
	var all []*audit.Snapshot
	for _, name := range files {
		text, err := input.Read(cmd, name, 64<<20)
		if err != nil {
			return nil, err
		}
		s, err := audit.ParseSnapshot(text)
		if err != nil {
			return nil, exit.Usage(name, exit.Plain(err), "fullpipe audit --collect > FILE, or a script of --collector")
		}
		all = append(all, s)
	}
	return all, nil
}

func (f *flags) judgedPath(cmd *cobra.Command) (audit.Path, error) {
	path := audit.Path{RateBps: float64(f.rate), RTT: time.Duration(f.rtt), Connections: f.connections}
	program, err := cmdflag.FindProgram(f.app)
	if err != nil {
		return path, err
	}
	path.Program = program.Name
	path.ReceiveDatagrams = int64(program.ReceiveDatagrams)
	path.SendDatagrams = int64(program.SendDatagrams)
	if f.path != "" {
		text, err := input.Read(cmd, f.path, 16<<20)
		if err != nil {
			return path, err
		}
		measured, err := pathOf(text)
		if err != nil {
			return path, exit.Usage("--path", fmt.Sprintf("%s: %v", f.path, err),
				"a file that tune --json or plan --json wrote")
		}
		path.RateBps = measured.RateBps
		path.RTT = measured.RTT
	}
	if (path.RateBps > 0) != (path.RTT > 0) {
		return path, exit.Usage("--rate, --rtt", "a path needs both", "--rate 1gbit --rtt 100ms")
	}
	if f.connections < 1 {
		return path, exit.Usage("--connections", fmt.Sprintf("%d connections", f.connections), "1 or more")
	}
	return path, nil
}

// pathOf returns the path in a document of plan, or of tune the direction with the larger bandwidth-delay product.
func pathOf(text []byte) (audit.Path, error) {
	var doc struct {
		RateBps    float64 `json:"rate_bps"`
		RTTS       float64 `json:"rtt_s"`
		Directions []struct {
			Path struct {
				RTTMinS       float64 `json:"rtt_min_s"`
				BottleneckBps float64 `json:"bottleneck_bps"`
			} `json:"path"`
		} `json:"directions"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return audit.Path{}, err
	}
	rate := doc.RateBps
	rtt := doc.RTTS
	for _, d := range doc.Directions {
		if d.Path.BottleneckBps*d.Path.RTTMinS > rate*rtt {
			rate = d.Path.BottleneckBps
			rtt = d.Path.RTTMinS
		}
	}
	if !(rate > 0) || !(rtt > 0) || rtt > cmdflag.MaxRTT {
		return audit.Path{}, fmt.Errorf("it has no path")
	}
	return audit.Path{RateBps: rate, RTT: units.Seconds(rtt)}, nil
}
