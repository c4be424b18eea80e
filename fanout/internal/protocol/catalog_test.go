// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallConfigs returns the configurations that every run of the tests explores.
func smallConfigs() []config {
	return slices.Concat(small, guards, adoptSmall, lodgings, agreements, movesSmall, successionsSmall, centralSmall, takeoversSmall, smallChanges, evacuations, comebacks, returns, lateSmall, lostHomes, losses, requests, repliesSmall, restoreSmall, restoredBack, attempted, astraySmall, exactRemovals)
}

// deepConfigs returns the configurations that take minutes.
func deepConfigs() []config {
	return slices.Concat(deep, adoptDeep, lodgingsDeep, agreementsDeep, movesDeep, successionsDeep, centralDeep, takeoversDeep, deepChanges, evacuationsDeep, returnsDeep, lateDeep, lossesDeep, requestsDeep, repliesDeep, restoreDeep, restoredBackDeep, attemptedDeep, astrayDeep, exactRemovalsDeep)
}

// allMutants returns the rules of the protocol, each with the violation that the exploration
// finds when the rule is broken.
func allMutants() []broken {
	return slices.Concat(mutants, guardMutants, leaseMutants, adoptMutants, lodgingMutants, agreementMutants, centralMutants, takeoverMutants, changeMutants, comebackMutants, departureMutants, returnMutants, lateMutants, lostHomeMutants, lossMutants, moveMutants, requestMutants, restoreMutants, attemptMutants, returnedMutants, astrayMutants, exactMutants)
}

// broken is a rule of the protocol and a configuration that breaks it.
type broken struct {
	n    string // number in mutants.md of the interleaving that the rule prevents, such as "N31"; "": none
	rule string
	cfg  config // with the mutant that breaks the rule
	want string // the violation that is found, or a part of it
	live bool   // the mutant breaks liveness only
}

func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: each mutant needs its whole exploration")
	}
	page := newMutantsPage()
	for _, b := range allMutants() {
		t.Run(b.rule, func(t *testing.T) {
			b.cfg.name = b.rule
			e := exploration{cfg: b.cfg, limit: 300_000}
			if b.live {
				e.every = 1
			}
			trace := e.explore()
			require.NotEmpty(t, trace, "the exploration of %d states did not notice", e.states)
			first, _, _ := strings.Cut(trace, "\n")
			require.Contains(t, first, b.want, trace)
			t.Log(first)
			page.explored(b, e.states, first)
		})
	}
	if !t.Failed() {
		page.write(t)
	}
}
