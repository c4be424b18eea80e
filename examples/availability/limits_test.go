// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	low, high := demand{6, 6, 6, 6}, demand{18, 18, 17, 18}
	for name, test := range map[string]struct {
		before             limits
		available, present int
		demand             demand
		lost               bool
		budget, most       int
		wrong              string
	}{
		"replicas start":                        {limits{}, 3, 6, low, false, 0, 8, ""},
		"they are available":                    {limits{most: 8}, 4, 6, low, false, 4, 8, ""},
		"one too few":                           {limits{budget: 4, most: 8}, 3, 6, low, false, 4, 8, "3 replicas are available, of at least 4"},
		"one too many":                          {limits{budget: 4, most: 8}, 6, 9, low, false, 4, 8, "9 pods run, of at most 8"},
		"the load has risen":                    {limits{budget: 4, most: 8}, 6, 6, high, false, 4, 20, ""},
		"enough of them are available":          {limits{budget: 4, most: 20}, 16, 18, high, false, 16, 20, ""},
		"autoscalers are content":               {limits{budget: 16, most: 20}, 15, 17, demand{17, 18, 17, 18}, false, 15, 20, ""},
		"the workload has less than is needed":  {limits{budget: 16, most: 20}, 14, 18, demand{12, 18, 17, 18}, false, 15, 20, "14 replicas are available, of at least 15"},
		"the workload has more than is needed":  {limits{budget: 16, most: 20}, 16, 22, demand{20, 18, 17, 18}, false, 16, 22, ""},
		"a cluster is lost":                     {limits{budget: 16, most: 20}, 12, 12, high, true, 12, 20, ""},
		"the others have lost more":             {limits{budget: 12, most: 20}, 11, 12, high, false, 12, 20, "11 replicas are available, of at least 12"},
		"the load has fallen":                   {limits{budget: 16, most: 20}, 18, 18, demand{18, 6, 6, 6}, false, 4, 20, ""},
		"the workload has followed":             {limits{budget: 4, most: 20}, 18, 18, low, false, 4, 20, ""},
		"the pods have followed":                {limits{budget: 4, most: 20}, 6, 8, low, false, 4, 8, ""},
		"a cluster joins":                       {limits{budget: 16, most: 20, joining: 2}, 18, 22, high, false, 16, 22, ""},
		"more pods than a joining cluster adds": {limits{budget: 16, most: 20, joining: 2}, 18, 23, high, false, 16, 22, "23 pods run, of at most 22"},
	} {
		t.Run(name, func(t *testing.T) {
			l := test.before
			l.next(test.available, test.present, test.demand, test.lost)
			require.Equal(t, []int{test.budget, test.most}, []int{l.budget, l.most})
			wrong := l.judge(test.available, test.present)
			if test.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.Equal(t, []string{test.wrong}, wrong)
		})
	}
}
