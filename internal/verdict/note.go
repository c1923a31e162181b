package verdict

// NoteCode names what a note states.
type NoteCode string

// Notes of a diagnosis.
const (
	NoHandshake        NoteCode = "no-handshake"
	NoSYN              NoteCode = "no-syn"
	NoSYNACK           NoteCode = "no-syn-ack"
	BothSidesOfBox     NoteCode = "both-sides-of-box"      // one side is judged
	OptionsCut         NoteCode = "options-cut"            // of a SYN, by the capture
	FileTwice          NoteCode = "file-twice"             // Words: the file that is left out, the other one
	TwoPlaces          NoteCode = "two-places"             // Words: near file, far file
	NotInOtherCapture  NoteCode = "not-in-other-capture"   // a connection
	NoCommonConnection NoteCode = "no-common-connection"   // near, far; Words: near from, near to, far from, far to
	RenumberedBetween  NoteCode = "renumbered-between"     // sequence numbers
	FewCommonSegments  NoteCode = "few-common-segments"    // in both captures
	SYNNotWhole        NoteCode = "syn-not-whole"          // Words: client or server
	OptionChanged      NoteCode = "option-changed-between" // Words: client or server, option, near, far
	ListCut            NoteCode = "list-cut"               // listed, judged
)

// Notes of a prediction.
const (
	BurstOfPolicer     NoteCode = "burst-of-policer"
	NoReordering       NoteCode = "reordering-not-modelled"
	FullSegmentsVanish NoteCode = "full-segments-vanish"
	BoundTakenToQueue  NoteCode = "bound-taken-to-queue"
	WholeBufferOffered NoteCode = "whole-buffer-offered" // buffer_bytes, window_bytes; Words: system, end
	BufferOverrun      NoteCode = "buffer-overrun"
	FirmWithNoDelay    NoteCode = "firm-with-no-delay" // goodput_bps
)

// Notes of a watch: parts of the host that it does not see.
const (
	OtherUsersPrograms    NoteCode = "other-users-programs"
	OtherNamespaces       NoteCode = "other-namespaces"
	WithinHost            NoteCode = "within-host"        // connections
	NamespacesRefused     NoteCode = "namespaces-refused" // namespaces
	NamespacesHidden      NoteCode = "namespaces-hidden"  // processes
	NamespaceEnded        NoteCode = "namespace-ended"    // at_s
	DumpsFailed           NoteCode = "dumps-failed"       // dumps
	ServicesAndContainers NoteCode = "services-and-containers"
	OutsideLists          NoteCode = "outside-lists"              // every_s
	Retransmissions       NoteCode = "retransmissions-unreported" // by the system
	WithoutCounters       NoteCode = "without-counters"           // connections
	ListsFailed           NoteCode = "lists-failed"               // lists; Words: the last error
	NoPlacesOfLoss        NoteCode = "no-places-of-loss"          // without the privilege
	SettingsMayDiffer     NoteCode = "settings-may-differ"        // Words: the error of putting them back
)

// Notes of a capture.
const (
	HeadersCut        NoteCode = "headers-cut"        // packets
	Fragments         NoteCode = "fragments"          // packets
	Malformed         NoteCode = "malformed"          // packets
	UnknownLink       NoteCode = "unknown-link"       // packets, link_type
	MoreUnknownLinks  NoteCode = "more-unknown-links" // link_types
	PacketsLost       NoteCode = "packets-lost"       // packets, by the capturing program
	RecordsSorted     NoteCode = "records-sorted"     // records, behind_s
	RecordsUnsorted   NoteCode = "records-unsorted"   // records
	RecordsMisstamped NoteCode = "records-misstamped" // records
	ClockSet          NoteCode = "clock-set"          // times, step_s: below 0 is back
	FileDamaged       NoteCode = "file-damaged"       // Words: the error
)

// Note is a code with the values of its sentence. In JSON it is its Text, which package render/text sets.
type Note struct {
	Code   NoteCode
	Values Values
	Words  []string // words of the sentence, such as the name of an option
	Text   string
}

// String returns the sentence.
func (n Note) String() string { return n.Text }

// MarshalText returns the sentence.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.Text), nil }

// UnmarshalText reads the sentence.
func (n *Note) UnmarshalText(text []byte) error {
	*n = Note{Text: string(text)}
	return nil
}
