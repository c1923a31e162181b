package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Figure is one direction of a run's result.
type Figure struct {
	Sender     string // agent
	GoodputBps *float64
	Limiter    string
	LostAt     []string // places of loss
}

// listOf returns the places of a list in the database.
func listOf(places string) []string {
	if places == "" {
		return nil
	}
	return strings.Split(places, ",")
}

// Figures returns the figures of the done jobs, by the job's ID, the direction of the agent that tested first.
func (f *Fleet) Figures(ctx context.Context, jobs []Job) (map[string][]Figure, error) {
	byID := map[string]Job{}
	var ids []any
	var places []string
	for _, j := range jobs {
		if j.State == mesh.Done {
			byID[j.ID] = j
			ids = append(ids, j.ID)
			places = append(places, fmt.Sprintf("$%d", len(ids)))
		}
	}
	figures := map[string][]Figure{}
	if len(ids) == 0 {
		return figures, nil
	}
	err := f.query(ctx, func(rows *sql.Rows) error {
		var id, direction, places string
		var one Figure
		err := rows.Scan(&id, &direction, &one.GoodputBps, &one.Limiter, &places)
		one.LostAt = listOf(places)
		j := byID[id]
		one.Sender = j.Near
		if direction == string(transfer.Down) {
			one.Sender = j.Other(j.Near)
		}
		figures[id] = append(figures[id], one)
		return err
	}, "SELECT run, direction, goodput_bps, limiter, lost_at FROM direction WHERE run IN ("+strings.Join(places, ",")+
		") ORDER BY run, direction DESC", ids...)
	return figures, err
}
