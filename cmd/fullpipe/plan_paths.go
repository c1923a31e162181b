package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// allPaths are the paths that one plan has to serve: --rate and --rtt, then each --path,
// then each --also.
func (f *planFlags) allPaths() ([]plan.Path, error) {
	var paths []plan.Path
	if f.rate > 0 || f.rtt > 0 || len(f.paths) == 0 {
		paths = append(paths, plan.Path{RateBps: float64(f.rate), RTT: time.Duration(f.rtt), Jitter: time.Duration(f.jitter)})
	}
	for _, text := range f.paths {
		some, err := pathsOf(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, some...)
	}
	for _, text := range f.also {
		other, err := ratePath("--also", text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, other)
	}
	for i := range paths {
		paths[i].MSS, paths[i].Connections, paths[i].MemoryBytes = f.mss, f.connections, int64(f.memory)
	}
	return paths, nil
}

// pathsOf reads what --path names: a file of results, a path in the lab's words, or
// RATE,RTT[,JITTER].
func pathsOf(text string) ([]plan.Path, error) {
	if file, err := os.Open(text); err == nil {
		defer file.Close()
		paths, err := measuredPaths(file)
		if err != nil {
			return nil, &usageError{"--path", fmt.Sprintf("%s: %v", text, err), "a file that tune --json wrote"}
		}
		return paths, nil
	}
	if first, _, _ := strings.Cut(text, ","); !strings.Contains(first, "=") {
		if _, err := units.ParseRate(first); err == nil {
			p, err := ratePath("--path", text)
			return []plan.Path{p}, err
		}
	}
	path, err := link.Parse(strings.TrimPrefix(text, "lab:"))
	if err != nil {
		return nil, &usageError{"--path", err.Error(), "10mbit,85ms or wan-40ms or rate=100mbit,rtt=40ms or a file of tune --json"}
	}
	p := plan.Path{RateBps: float64(path.Up.Rate), RTT: path.RTT, Jitter: max(path.Up.Jitter, path.Down.Jitter)}
	return []plan.Path{p}, nil
}

// longestResult is the most that is read of a file of results.
const longestResult = 64 << 20

// measuredPaths are the directions of a tune's result whose rate is known.
func measuredPaths(r io.Reader) ([]plan.Path, error) {
	var result struct {
		Schema     string
		Directions []struct {
			Path struct {
				Bottleneck float64 `json:"bottleneck_bps"`
				RTT        float64 `json:"rtt_min_s"`
				Jitter     float64 `json:"jitter_s"`
			}
		}
	}
	if err := json.NewDecoder(io.LimitReader(r, longestResult)).Decode(&result); err != nil {
		return nil, fmt.Errorf("no result: %w", err)
	}
	if !strings.HasPrefix(result.Schema, "fullpipe/tune/") {
		return nil, fmt.Errorf("%q tells no path's rate and round trip", result.Schema)
	}
	var paths []plan.Path
	for _, d := range result.Directions {
		if d.Path.Bottleneck > 0 && d.Path.RTT > 0 {
			paths = append(paths, plan.Path{RateBps: d.Path.Bottleneck, RTT: seconds(d.Path.RTT), Jitter: seconds(d.Path.Jitter)})
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("neither direction's rate was found")
	}
	return paths, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ratePath reads RATE,RTT[,JITTER].
func ratePath(flag, text string) (p plan.Path, err error) {
	wrong := func(err error) error {
		return &usageError{flag, fmt.Sprintf("%q: %v", text, err), flag + " 64kbit,100ms or " + flag + " 10mbit,85ms,20ms"}
	}
	fields := strings.Split(text, ",")
	if len(fields) < 2 || len(fields) > 3 {
		return p, wrong(errors.New("a path is RATE,RTT or RATE,RTT,JITTER"))
	}
	rate, err := units.ParseRate(fields[0])
	if err != nil {
		return p, wrong(err)
	}
	p.RateBps = float64(rate)
	if p.RTT, err = units.ParseTime(fields[1]); err != nil {
		return p, wrong(err)
	}
	if len(fields) == 3 {
		if p.Jitter, err = units.ParseTime(fields[2]); err != nil {
			return p, wrong(err)
		}
	}
	return p, nil
}
