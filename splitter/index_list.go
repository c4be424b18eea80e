// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// indexList is a set of indexes: ranges in ascending order that do not touch each other.
type indexList []span

// readIndexes reads a list in the form of status.completedIndexes of a Job, such as "1,3-5". It skips entries that cannot
// be read, and indexes that are not in the range within.
func readIndexes(text string, within span) indexList {
	var all []span
	for entry := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(entry, "-")
		first, err1 := strconv.ParseInt(from, 10, 32)
		last, err2 := first, error(nil)
		if isRange {
			last, err2 = strconv.ParseInt(to, 10, 32)
		}
		s := span{max(first, within.first), min(last, within.last)}
		if err1 == nil && err2 == nil && s.first <= s.last {
			all = append(all, s)
		}
	}
	return union(all)
}

// union returns the indexes that are in at least one of the ranges. It sorts all.
func union(all []span) (list indexList) {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range all {
		if n := len(list); n > 0 && s.first <= list[n-1].last+1 {
			list[n-1].last = max(list[n-1].last, s.last)
			continue
		}
		list = append(list, s)
	}
	return list
}

// without returns the indexes of l that are not in other.
func (l indexList) without(other indexList) (left indexList) {
	i := 0
	for _, s := range l {
		for ; i < len(other) && other[i].last < s.first; i++ {
		}
		for j := i; j < len(other) && other[j].first <= s.last; j++ {
			if other[j].first > s.first {
				left = append(left, span{s.first, other[j].first - 1})
			}
			s.first = other[j].last + 1
		}
		if s.first <= s.last {
			left = append(left, s)
		}
	}
	return left
}

// shift adds n to each index.
func (l indexList) shift(n int64) (shifted indexList) {
	for _, s := range l {
		shifted = append(shifted, span{s.first + n, s.last + n})
	}
	return shifted
}

func (l indexList) count() (n int64) {
	for _, s := range l {
		n += s.size()
	}
	return n
}

// String returns the list in the form that the controller of Jobs writes: "1,2" for two adjacent indexes, "1-3" for more.
func (l indexList) String() string {
	var entries []string
	for _, s := range l {
		text := strconv.FormatInt(s.first, 10)
		switch {
		case s.size() == 2:
			text += "," + strconv.FormatInt(s.last, 10)
		case s.size() > 2:
			text += "-" + strconv.FormatInt(s.last, 10)
		}
		entries = append(entries, text)
	}
	return strings.Join(entries, ",")
}

// foldIndexes sets completedIndexes, failedIndexes and succeeded of an Indexed Job. An index that was completed once stays
// completed, also if its cluster is lost, and does not count as failed if it fails when it is repeated.
func foldIndexes(status map[string]any, parent *unstructured.Unstructured, shards []Shard) {
	everything := span{0, numberOr(parent, 0, "spec", "completions") - 1}
	completed, failed := []span(readIndexes(text(parent, "completedIndexes"), everything)), []span{}
	for _, s := range shards {
		if s.Object == nil {
			continue
		}
		own := indexesOf(parent, s.Object)
		local := span{0, own.size() - 1}
		completed = append(completed, readIndexes(text(s.Object, "completedIndexes"), local).shift(own.first)...)
		failed = append(failed, readIndexes(text(s.Object, "failedIndexes"), local).shift(own.first)...)
	}
	done := union(completed)
	if done != nil {
		status["completedIndexes"] = done.String()
	}
	_, perIndex := number(parent, "spec", "backoffLimitPerIndex")
	if broken := union(failed).without(done); broken != nil || perIndex {
		status["failedIndexes"] = broken.String()
	}
	if now, _ := status["succeeded"].(int64); done.count() > now {
		status["succeeded"] = done.count()
	}
}
