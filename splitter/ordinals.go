// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// numbering is a Kind that gives each cluster a range of ordinals.
type numbering interface {
	// number gives the shards their ranges.
	number(parent *unstructured.Unstructured, shards, have []Shard) error
	// bound returns a copy of the shares in which no cluster gets more replicas than its range permits.
	bound(parent *unstructured.Unstructured, shares []Share, have []Shard) []Share
}

// ordinals has the range of ordinals of each cluster that has, or once had, a shard of a StatefulSet. A range never
// changes and is never given to another cluster: replicas that are still running may have its ordinals.
type ordinals struct {
	perCluster int64 // the size of new ranges; zero if the StatefulSet does not ask for ranges
	base       int64 // the first ordinal of the first range
	ranges     map[string]span
}

// span is a range of ordinals or indexes, from first to last, both included.
type span struct{ first, last int64 }

func (s span) size() int64          { return s.last - s.first + 1 }
func (s span) overlaps(o span) bool { return s.first <= o.last && o.first <= s.last }

// ordinalsOf reads the ranges of a StatefulSet. The annotation of a shard precedes that of the StatefulSet, which a client
// may have replaced without its annotations. A shard that is older than OrdinalsPerClusterAnnotation keeps its ordinals.
// It is pure.
func ordinalsOf(parent *unstructured.Unstructured, have []Shard) (ordinals, error) {
	o := ordinals{base: max(0, numberOr(parent, 0, "spec", "ordinals", "start")), ranges: map[string]span{}}
	if text, ok := parent.GetAnnotations()[v1alpha1.OrdinalsPerClusterAnnotation]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return ordinals{}, fmt.Errorf("annotation %s is %q; accepted: a whole number from 1 to %d", v1alpha1.OrdinalsPerClusterAnnotation, text, math.MaxInt32)
		}
		o.perCluster = n
	}
	for _, s := range have {
		own, ok := readSpans(s.annotations()[v1alpha1.OrdinalsAnnotation])[s.Cluster]
		if !ok && o.perCluster > 0 && s.Object != nil {
			first := max(0, numberOr(s.Object, 0, "spec", "ordinals", "start"))
			own, ok = span{first, first + max(o.perCluster, numberOr(s.Object, 1, "spec", "replicas")) - 1}, true
		}
		if ok {
			o.ranges[s.Cluster] = own
		}
	}
	recorded := readSpans(parent.GetAnnotations()[v1alpha1.OrdinalsAnnotation])
	for _, cluster := range slices.SortedFunc(maps.Keys(recorded), func(a, b string) int {
		return cmp.Or(cmp.Compare(recorded[a].first, recorded[b].first), cmp.Compare(a, b))
	}) {
		if _, ok := o.ranges[cluster]; !ok && len(o.overlapping(recorded[cluster])) == 0 {
			o.ranges[cluster] = recorded[cluster]
		}
	}
	return o, nil
}

// overlapping returns the clusters whose ranges overlap the given one, sorted.
func (o ordinals) overlapping(s span) (names []string) {
	for _, cluster := range slices.Sorted(maps.Keys(o.ranges)) {
		if o.ranges[cluster].overlaps(s) {
			names = append(names, cluster)
		}
	}
	return names
}

// shared returns the clusters of the shards whose ranges overlap the range of another cluster, sorted. The ranges of
// shards that are older than OrdinalsPerClusterAnnotation can overlap.
func (o ordinals) shared(shards []Shard) (names []string) {
	for _, s := range shards {
		if r, ok := o.ranges[s.Cluster]; ok && len(o.overlapping(r)) > 1 {
			names = append(names, s.Cluster)
		}
	}
	slices.Sort(names)
	return names
}

// free returns the range that the next cluster gets, after all other ranges, and how many ranges are left from there on.
func (o ordinals) free() (next span, left int64) {
	first := o.base
	for _, r := range o.ranges {
		first = max(first, r.last+1)
	}
	return span{first, first + o.perCluster - 1}, (math.MaxInt32 + 1 - first) / max(1, o.perCluster)
}

// bound returns a copy of the shares in which no cluster gets more replicas than its range has ordinals. A shard that has
// more replicas already keeps them.
func (o ordinals) bound(shares []Share, have []Shard) []Share {
	there := byCluster(have)
	limits := map[string]int64{}
	_, left := o.free()
	var names []string
	for _, s := range clusters(shares) {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	for _, cluster := range names {
		r, ok := o.ranges[cluster]
		switch {
		case ok:
			limits[cluster] = max(r.size(), numberOr(there[cluster].Object, 0, "spec", "replicas"))
		case o.perCluster > 0 && left > 0:
			limits[cluster], left = o.perCluster, left-1
		case o.perCluster > 0:
			limits[cluster] = 0
		}
	}
	return eachCluster(shares, func(s *Share) {
		if n, ok := limits[s.Name]; ok && (s.Max == nil || *s.Max > n) {
			s.Max, s.Min = &n, min(s.Min, n)
		}
	})
}

// number gives each shard the first ordinal of its range, and a range to each shard whose cluster has none.
func (o ordinals) number(shards []Shard) error {
	shards = slices.Clone(shards)
	slices.SortFunc(shards, func(a, b Shard) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for _, s := range shards {
		r, ok := o.ranges[s.Cluster]
		if !ok && o.perCluster > 0 {
			var left int64
			if r, left = o.free(); left < 1 {
				return fmt.Errorf("no ordinals are left for cluster %s", s.Cluster)
			}
			o.ranges[s.Cluster], ok = r, true
		}
		if !ok {
			continue
		}
		if err := unstructured.SetNestedField(s.Object.Object, r.first, "spec", "ordinals", "start"); err != nil {
			return fmt.Errorf("spec.ordinals.start: %w", err)
		}
		annotate(s.Object, v1alpha1.OrdinalsAnnotation, writeSpans(map[string]span{s.Cluster: r}))
	}
	return nil
}

// sharesOrdinals returns the message about clusters whose pods may have the same ordinals.
func sharesOrdinals(names []string) string {
	return fmt.Sprintf("pods in these clusters may have the same ordinals, because they ran before the annotation %s was set: %s: a cluster gets ordinals of its own when it has had no replicas for a while",
		v1alpha1.OrdinalsPerClusterAnnotation, loop.Brief(names, ", "))
}

// annotate sets an annotation of an object.
func annotate(obj *unstructured.Unstructured, name, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	obj.SetAnnotations(annotations)
}

// readSpans reads the value of an annotation with ranges: CLUSTER=FIRST-LAST, joined by commas. Entries that cannot be
// read count as absent.
func readSpans(text string) map[string]span {
	ranges := map[string]span{}
	for entry := range strings.SplitSeq(text, ",") {
		cluster, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		from, to, _ := strings.Cut(value, "-")
		first, err1 := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err1 == nil && err2 == nil && cluster != "" && 0 <= first && first <= last {
			ranges[cluster] = span{first, last}
		}
	}
	return ranges
}

// writeSpans returns the value of an annotation with ranges, in the order of the ranges.
func writeSpans(ranges map[string]span) string {
	var entries []string
	for _, cluster := range slices.SortedFunc(maps.Keys(ranges), func(a, b string) int {
		return cmp.Or(cmp.Compare(ranges[a].first, ranges[b].first), cmp.Compare(a, b))
	}) {
		entries = append(entries, fmt.Sprintf("%s=%d-%d", cluster, ranges[cluster].first, ranges[cluster].last))
	}
	return strings.Join(entries, ",")
}
