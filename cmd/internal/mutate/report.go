package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// report is the answer of -json.
type report struct {
	Seed     uint64    `json:"seed"`
	Sites    int       `json:"sites"` // that the packages have
	Killed   int       `json:"killed"`
	Survived int       `json:"survived"`
	Verdicts []verdict `json:"verdicts"`
}

// printReport prints survivors, then the sums by package.
func printReport(w io.Writer, list []verdict, sites int, cfg config) error {
	rep := report{Seed: cfg.seed, Sites: sites, Verdicts: list}
	sums := map[string][2]int{}
	for _, v := range list {
		sum := sums[v.Package]
		if v.Outcome == killed {
			rep.Killed++
			sum[0]++
		} else {
			rep.Survived++
			sum[1]++
		}
		sums[v.Package] = sum
	}
	if cfg.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(rep)
	}
	left := slices.DeleteFunc(slices.Clone(list), func(v verdict) bool { return v.Outcome != survived })
	slices.SortFunc(left, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.From, b.From))
	})
	for _, v := range left {
		fmt.Fprintf(w, "%s:%d: %s\n\t- %s\n\t+ %s\n", v.File, v.Line, v.Kind, v.Before, v.After)
	}
	names := make([]string, 0, len(sums))
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%s: %d killed, %d survived\n", name, sums[name][0], sums[name][1])
	}
	_, err := fmt.Fprintf(w, "seed %d: %d of %d sites tried, %d killed, %d survived\n", cfg.seed, len(list), sites, rep.Killed, rep.Survived)
	return err
}
