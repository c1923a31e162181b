package tune

import (
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Code names what the loop found; package text has its sentence.
type Code string

// Statement is a code with the values of its sentence.
type Statement struct {
	Code   Code
	Values verdict.Values
	Setup  Setup    // that it is about
	Names  []string // of what the two ends understood differently
	Err    error
}

// Reasons of a verdict. share is what automatic sizing reaches of the best, noise the scatter of single runs as a
// share. Direction.Open has the open decision.
const (
	NothingMeasured     Code = "nothing-measured"
	CutShort            Code = "cut-short"
	SegmentsVanish      Code = "segments-vanish"
	SmallerSegmentsPass Code = "smaller-segments-pass"
	AtCeilings          Code = "at-ceilings"
	QueueShortened      Code = "queue-shortened"
	QueueIsShort        Code = "queue-is-short"
	GainsMoreThanTakes  Code = "gains-more-than-takes"
	BetterBelowCeilings Code = "better-below-ceilings"
	Better              Code = "better"
	LikelyBetter        Code = "likely-better" // probability; Open with the budget that would show it
	AsFast              Code = "as-fast"       // with clearly fewer retransmissions
	SmallestWindow      Code = "smallest-window"
	BetterWindow        Code = "better-window"
	LinkFull            Code = "link-full"             // share
	NearlyShown         Code = "nearly-best-shown"     // share
	Indistinguishable   Code = "indistinguishable"     // share, noise
	NearlyLikely        Code = "nearly-best-likely"    // share
	NothingHelps        Code = "nothing-helps"         // decided
	AutomaticSuffices   Code = "automatic-suffices"    // share
	TooLittleMeasured   Code = "too-little-measured"   // Open, if a larger budget would decide
	ScatteredGain       Code = "scattered-gain"        // Open
	PromisingRemedy     Code = "promising-remedy"      // Open
	NeedsRuns           Code = "needs-runs"            // Open with its numbers of runs
	PromisingWindow     Code = "promising-window"      // Open, noise
	WindowsUndecided    Code = "windows-undecided"     // Open, share, noise
	NothingShown        Code = "nothing-shown"         // not decided
	HostDisturbed       Code = "measurement-disturbed" // Disturbed
)

// Warnings.
const (
	NarrowerMTU        Code = "narrower-mtu"        // mtu, first
	HandshakeRewritten Code = "handshake-rewritten" // Names
	NoRTT              Code = "no-rtt"
	NotTried           Code = "not-tried" // Setup, Err
	BudgetSpent        Code = "budget-spent"
	TakesMoreThanGains Code = "takes-more-than-gains" // Setup, factor, others
	GainUnproven       Code = "gain-unproven"         // Setup, low, high
	RetransmitsMuch    Code = "retransmits-much"      // Setup, retransmitted, retransmitted_before
)

// Reasons why a change of a host was kept or taken back.
const (
	ProofCutShort Code = "proof-cut-short" // Err
	CostsGoodput  Code = "costs-goodput"   // factor
	FasterChanged Code = "faster"
	LikelyChanged Code = "likely-changed"  // low, high
	AsFastChanged Code = "as-fast-changed" // with clearly fewer retransmissions
	SlowerChanged Code = "slower"
	NoGainShown   Code = "no-gain-shown" // low, high
	HostNotSet    Code = "host-not-set"  // Err
)

// Purposes of the loop's own trials.
const (
	IdlePath       search.Purpose = "rtt"
	Today          search.Purpose = "baseline"
	TodayLonger    search.Purpose = "baseline-longer"
	AnythingPasses search.Purpose = "anything"
	SegmentsPass   search.Purpose = "smaller-segments"
	BetweenLosses  search.Purpose = "between-losses"
	FillsAgain     search.Purpose = "fills-again"
	StaysFull      search.Purpose = "stays-full"
	PathLimit      search.Purpose = "path-limit"
	BelowCapacity  search.Purpose = "below-capacity"
	SeveralStreams search.Purpose = "several-streams"
	Candidate      search.Purpose = "candidate"
	ComparedWith   search.Purpose = "compared-with"
	ProofBefore    search.Purpose = "proof-before"
	ProofAfter     search.Purpose = "proof-after"
	Alone          search.Purpose = "alone"
	ProofUnchanged search.Purpose = "proof-unchanged"
	ProofChanged   search.Purpose = "proof-changed"
)

// notes are warnings, in the order in which they arose.
type notes []Statement

func (n *notes) add(s Statement) { *n = append(*n, s) }
