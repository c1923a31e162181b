package model

import (
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestAFDOutstanding(t *testing.T) {
	for _, tt := range []struct{ quota, write, want int }{
		{8192, 1024, 8192}, {8192, 3000, 8192}, {8192, 8192, 8192}, {8192, 16384, 24576}, {16384, 16384, 16384}, {8192, 0, 0},
	} {
		if got := (AFD{tt.quota}).Outstanding(tt.write); got != tt.want {
			t.Errorf("quota %d, writes of %d: %d outstanding, want %d", tt.quota, tt.write, got, tt.want)
		}
	}
}

// The published figures in testdata are an application note's of about 2006: 100 Mbit/s
// with a delay simulator between two VPN gateways, writes of 1 to 16 KiB, Mbit/s.
const (
	publishedLink = 100e6
	// publishedGateway is what each gateway encrypts, acknowledgements included.
	publishedGateway = 30e6
)

// The default settings' cells of all tables together, network and VPN, against the least
// of link, gateway and what AFD keeps outstanding: nothing here is fitted to a table.
func TestAFDAgainstPublishedThroughput(t *testing.T) {
	const ack = 40 // for every second segment
	link := Goodput(publishedLink, 1460, IPHeaders+38)
	gateway := Goodput(publishedGateway, 1460, IPHeaders+ack/2)
	var published, ours, ratios []float64
	for name, rtt := range map[string]time.Duration{"2.5": 2500 * time.Microsecond, "12": 12 * time.Millisecond, "40": 40 * time.Millisecond} {
		for _, row := range readCells(t, "testdata/mguard-rtt"+name+"ms.csv") {
			write := int(row["write_bytes"])
			afd := AFD{DefaultAFDQuota}
			published = append(published, row["network_default"]*mbit, row["vpn_default"]*mbit)
			ours = append(ours, afd.Goodput(write, rtt, link), afd.Goodput(write, rtt, link, gateway))
		}
	}
	for i := range ours {
		ratios = append(ratios, ours[i]/published[i])
	}
	if r := correlation(ranks(published), ranks(ours)); r < 0.93 || len(ours) != 30 {
		t.Errorf("the rank correlation of %d cells is %.3f", len(ours), r)
	}
	if m := middle(ratios); math.Abs(m-1) > 0.15 {
		t.Errorf("the model's median is %.3f of what was published", m)
	}
}

// The send-buffer sweep says 2.5 ms; its unsaturated cells imply about 1.7.
func TestAFDAgainstThePublishedSendBufferSweep(t *testing.T) {
	link := Goodput(publishedLink, 1460, IPHeaders+38)
	var cells []AFDCell
	for _, row := range readCells(t, "testdata/mguard-sndbuf-sweep-rtt2.5ms.csv") {
		for column, mbits := range row {
			if quota, err := strconv.Atoi(column); err == nil {
				cells = append(cells, AFDCell{quota, int(row["write_bytes"]), mbits * mbit})
			}
		}
	}
	rtt := FitRTT(cells, link)
	if rtt < 1500*time.Microsecond || rtt > 1900*time.Microsecond || len(cells) != 40 {
		t.Errorf("%d cells imply a round trip of %v", len(cells), rtt)
	}
	var off []float64
	for _, c := range cells {
		if bps := (AFD{c.Quota}).Goodput(c.Write, rtt); bps < 0.95*link {
			off = append(off, math.Abs(bps/c.Bps-1))
		}
	}
	if m := middle(off); m > 0.15 || len(off) < 8 {
		t.Errorf("%d unsaturated cells are off by %.3f in the median", len(off), m)
	}
	if FitRTT(nil, link) != 0 {
		t.Error("no cells imply a round trip")
	}
}

// readCells reads a table whose first line names its columns.
func readCells(t *testing.T, name string) (rows []map[string]float64) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := map[string]float64{}
		for i, text := range line {
			if row[lines[0][i]], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ranks gives each value its place, equal ones the mean of theirs (Spearman).
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	places := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			places[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return places
}

func correlation(a, b []float64) float64 {
	mean := func(v []float64) (sum float64) {
		for _, x := range v {
			sum += x / float64(len(v))
		}
		return sum
	}
	ma, mb := mean(a), mean(b)
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+(a[i]-ma)*(b[i]-mb), aa+(a[i]-ma)*(a[i]-ma), bb+(b[i]-mb)*(b[i]-mb)
	}
	return ab / math.Sqrt(aa*bb)
}
