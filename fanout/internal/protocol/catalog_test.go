// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallConfigs are explored by every run of the tests.
func smallConfigs() []config {
	return slices.Concat(small, guards, adoptSmall, lodgings, agreements, movesSmall, successionsSmall, centralSmall, takeoversSmall, smallChanges, evacuations, comebacks, returns, lostHomes, losses, requests, repliesSmall, restoreSmall, restoredBack, attempted, astraySmall)
}

// deepConfigs are the configurations that take minutes.
func deepConfigs() []config {
	return slices.Concat(deep, adoptDeep, lodgingsDeep, agreementsDeep, movesDeep, successionsDeep, centralDeep, takeoversDeep, deepChanges, evacuationsDeep, returnsDeep, lossesDeep, requestsDeep, repliesDeep, restoreDeep, restoredBackDeep, attemptedDeep, astrayDeep)
}

// allMutants are the rules of the protocol, each with what is found when it is
// broken. They show that the exploration would notice.
func allMutants() []broken {
	return slices.Concat(mutants, guardMutants, leaseMutants, adoptMutants, lodgingMutants, agreementMutants, centralMutants, takeoverMutants, changeMutants, comebackMutants, departureMutants, returnMutants, lostHomeMutants, lossMutants, moveMutants, requestMutants, restoreMutants, attemptMutants, returnedMutants, astrayMutants)
}

// broken is a rule of the protocol that is broken.
type broken struct {
	n    string // the interleaving that the rule prevents, "N31"; "" if it has no number
	rule string
	cfg  config // with the mutant that breaks the rule
	want string // what is found; the beginning of a violation or a part of it
	live bool   // it breaks liveness only
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
