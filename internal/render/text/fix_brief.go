package text

import (
	"fmt"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// briefDo formats the first remedy in a few words, with a condition where the verdict has low confidence.
func briefDo(fixes []advice.Fix, v *verdict.Verdict) string {
	if v.Limiter == "" {
		return ""
	}
	if len(fixes) == 0 { // of a document that is older than fixes
		fixes = advice.Fixes(*v, advice.Facts{})
	}
	text := briefFix(&fixes[0])
	if isConditional(fixes, v) {
		return fmt.Sprintf("if it is %s: %s", v.Limiter, text)
	}
	return text
}

func briefFix(f *advice.Fix) string {
	if c := f.Ceiling; c != nil {
		if f.System.Family() == advice.Windows {
			return fmt.Sprintf("%s on the %s", normalLevel, f.End)
		}
		text := fmt.Sprintf("raise %s on the %s", c.Name, f.End)
		if c.NeededBytes > 0 {
			text += " to " + units.Size(c.NeededBytes).String()
		}
		return text
	}
	if len(f.Settings) == 1 {
		if text := briefSetting(f.Settings[0].Name, f.Settings[0].Value); text != "" {
			return text
		}
	}
	if text := briefElsewhere[f.Action][f.System.Family()]; text != "" {
		return text
	}
	return briefActions[f.Action]
}

// briefElsewhere has the few words for actions on systems without the tool that briefActions names.
var briefElsewhere = map[advice.Action]map[advice.System]string{
	advice.AskSender: {
		advice.FreeBSD:     "look at the sender's queue: netstat -x there",
		advice.Windows2000: "capture at the sending host",
	},
	advice.AskReceiver: {
		advice.Windows:     "run fullpipe why on the receiving host",
		advice.Windows2000: "capture at the receiving host",
		advice.MacOS:       receiversNetstat,
		advice.FreeBSD:     receiversNetstat,
	},
}

const receiversNetstat = "look at the receiver's queue: netstat -an there"

// briefSetting formats a setting whose value is the action; "" for others.
func briefSetting(name, value string) string {
	number, _ := strconv.ParseFloat(value, 64)
	switch name {
	case "TCP_CONGESTION", "congctl":
		return "try " + value
	case "SO_MAX_PACING_RATE":
		return "send at " + units.Rate(8*number).String()
	case "ThrottleRateActionBitsPerSecond":
		return "send at " + units.Rate(number).String()
	case "connections at once":
		return "use " + value + " connections at once"
	case "TCP_MAXSEG":
		return "lower the MSS to " + value
	case "mtu", "MTU":
		return "lower the MTU to " + value
	case "--budget":
		return "run fullpipe tune with --budget " + value
	}
	return ""
}

// briefActions has a few words for each action; a test checks that none is missing.
var briefActions = map[advice.Action]string{
	advice.LargerWindows:         "enlarge the buffers of both ends",
	advice.WindowOfBDP:           "limit the receive window to the BDP",
	advice.OtherControl:          "try another congestion control",
	advice.PaceBelow:             "send just below the policer's rate",
	advice.ParallelFlows:         "use several connections at once",
	advice.SmallerSegment:        "lower the MSS until full segments get through",
	advice.NoDelay:               "set TCP_NODELAY",
	advice.SendBufferOfTwo:       "raise SO_SNDBUF to more than two blocks",
	advice.QuickAck:              "acknowledge each segment at once at the receiver",
	advice.LowWater:              "set TCP_NOTSENT_LOWAT",
	advice.LargerWrites:          "use larger writes or more threads",
	advice.RemovePacing:          "raise or remove the pacing rate",
	advice.UpdateSystem:          "update the receiver's system",
	advice.ReadFaster:            "have the receiving program read faster",
	advice.WriteSooner:           "have the sending program write sooner",
	advice.LessWork:              "spend less processor time on a byte",
	advice.FreeProcessors:        "run fewer other programs, or add processors",
	advice.RaiseQuota:            "raise the program's CPU quota",
	advice.FasterDisk:            "use a faster disk, or larger reads and writes",
	advice.MoreMemory:            "give the program more memory",
	advice.FollowProgram:         "look at the program for which it waits",
	advice.FollowPeer:            "run fullpipe why on the host for whose data it waits",
	advice.ReleaseLock:           "hold the lock for less time",
	advice.ShorterPause:          "shorten the program's pauses or lift its rate limit",
	advice.ProgramsWindow:        "raise the receiving program's window",
	advice.LargerRequests:        "ask for more at a time",
	advice.KeepConnection:        "keep the connection open and use it again",
	advice.InitialWindow:         "raise the initial window",
	advice.AutotuningOn:          "switch autotuning on at the receiver",
	advice.NoIdleRestart:         "keep the window over pauses",
	advice.ForgetMetrics:         "forget what an earlier connection learnt",
	advice.RaiseCeilings:         "raise the ceilings of automatic buffers",
	advice.UnfixBuffer:           "find the cause of the receiver's fixed buffer",
	advice.WindowScaling:         "switch window scaling on at both ends",
	advice.ScaleAsOffered:        "have the receiver keep its window scale",
	advice.NoSegmentationOffload: "switch segmentation offload off on the sending host",
	advice.MarkLater:             "have the queue mark later",
	advice.KeepSACK:              "find the firewall that breaks SACK",
	advice.FindDrops:             "find what drops segments on the receiving host",
	advice.FindDamage:            "find the device that damages segments",
	advice.AnswerSYNs:            "find the cause of the lost SYNs",
	advice.ReorderLimit:          "let more reordering pass for no loss",
	advice.ProbeMTU:              "switch MTU probing on at the sender",
	advice.LetTooBigPass:         "let ICMP \"too big\" through",
	advice.LargerPathMTU:         "use a larger MTU along the path",
	advice.MarkCongestion:        "use ECN at both ends",
	advice.FairQueue:             "put a fair queue at the narrow point",
	advice.KeepFlowsInLine:       "keep each connection on one link",
	advice.ReplacePolicer:        "have the policer replaced by a shaper",
	advice.RaiseShaper:           "raise the shaper on the sending host",
	advice.RoomForAcks:           "make room on the way back",
	advice.FindLoss:              "find where packets are lost",
	advice.MoreCPU:               "give it a core of its own",
	advice.FasterLine:            "nothing to tune, the link is full",
	advice.MeasureOtherEnd:       "measure from the other end too",
	advice.AskSender:             "run fullpipe why on the sending host",
	advice.AskReceiver:           "look at the receiver's queue: ss -tm there",
	advice.CaptureSender:         "capture at the sending host",
	advice.CaptureFar:            "capture at the other end as well",
	advice.MeasureLonger:         "measure for longer",
	advice.MeasureWider:          "measure with twice the window",
	advice.MeasureAgain:          "measure again without the disturbance",
	advice.LargerBudget:          "run fullpipe tune again with more time",
	advice.SeeHandshake:          "capture from the handshake on",
}
