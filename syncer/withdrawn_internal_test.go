// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// What a watch reports as gone while a pass works with what the cache had of it stays withdrawn.
func TestAnOriginThatGoesDuringAPass(t *testing.T) {
	var w withdrawals
	key := types.NamespacedName{Name: "a"}
	w.add("uid")
	at := w.now()
	w.drop("uid", at)
	require.False(t, w.has(key, "uid"), "the pass found it again")
	w.add("uid")
	w.drop("uid", at)
	require.True(t, w.has(key, "uid"), "it went after the pass had read the cache")
	w.add("uid")
	w.drop("uid", w.now()-1)
	require.True(t, w.has(key, "uid"), "it went once more")
}
