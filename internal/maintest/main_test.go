// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package maintest_test

import (
	"errors"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// An error that was reported outside of bubbles does not delay an error in a bubble.
func TestErrorsDoNotWait(t *testing.T) {
	utilruntime.HandleErrorWithContext(t.Context(), errors.New("outside"), "Told")
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		utilruntime.HandleErrorWithContext(t.Context(), errors.New("inside"), "Told")
		require.Zero(t, time.Since(before))
	})
}

// Two property tests with one seed get the same cases.
func TestCasesAreChosen(t *testing.T) {
	if flag.Lookup("rapid.seed").Value.String() != "1" {
		t.Skip("the command line asks for another seed")
	}
	drawn := func() []int {
		var all []int
		rapid.Check(t, func(t *rapid.T) { all = append(all, rapid.Int().Draw(t, "n")) })
		return all
	}
	first := drawn()
	require.Equal(t, first, drawn())
}
