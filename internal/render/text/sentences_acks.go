package text

import "fmt"

func saySteadyAcks(f figures) string {
	return fmt.Sprintf("a queue stands in the path (%s), and acknowledgements come at a steady rate (it varies by %s) "+
		"while that of the data which they acknowledge varies by %s: the way back seems to carry no more of them; "+
		tellsTheWay, f.loaded(), f.share("acks_scatter_ratio"), f.share("data_scatter_ratio"))
}

func sayQueueEitherWay(f figures) string {
	return fmt.Sprintf("the path delivers a steady %s and a queue stands in it (%s): before a full link, or of "+
		"acknowledgements on their way back, whose rate varies less (by %s) than that of the data (by %s), which may be "+
		"chance; "+tellsTheWay, f.rate("steady_bps"), f.loaded(), f.share("acks_scatter_ratio"),
		f.share("data_scatter_ratio"))
}

// tellsTheWay is what tells a queue of data from one of acknowledgements.
const tellsTheWay = "the sender alone cannot tell which way it stands: samples of the receiver do (fullpipe measure " +
	"with the other host as its far end), or captures at both ends"
