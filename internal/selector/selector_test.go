// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package selector_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/atoll-dev/atoll/internal/selector"
)

func TestRead(t *testing.T) {
	web := labels.Set{"app": "web"}
	for name, test := range map[string]struct {
		content map[string]any
		selects bool
	}{
		"labels":           {map[string]any{"matchLabels": map[string]any{"app": "web"}}, true},
		"other labels":     {map[string]any{"matchLabels": map[string]any{"app": "db"}}, false},
		"empty":            {map[string]any{}, true},
		"another type":     {map[string]any{"matchLabels": "app=web"}, false},
		"unknown operator": {map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Like"}}}, false},
	} {
		require.Equal(t, test.selects, selector.Read(test.content).Matches(web), name)
	}
}
