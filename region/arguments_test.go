// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// If an argument is missing, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	for want, try := range map[string]func() error{
		"ring: Source is nil":              func() error { _, err := NewRing(nil, Options{}); return err },
		"ring: it was not made by NewRing": func() error { return new(Ring).Start(t.Context()) },
		"each: the Directory is nil": func() error {
			_, err := Each(t.Context(), nil, "op", All(), func(context.Context, *Conn) (int, error) { return 0, nil })
			return err
		},
		"each: the func is nil": func() error {
			_, err := Each[int](t.Context(), Fixed(), "op", All(), nil)
			return err
		},
		"engage: the Directory is nil": func() error {
			return Engage(t.Context(), nil, func(context.Context, *Conn) error { return nil })
		},
		"engage: the func is nil":       func() error { return Engage(t.Context(), Fixed(), nil) },
		"api: the configuration is nil": func() error { _, err := APIFor(nil); return err },
		"the configuration is nil":      func() error { _, err := FromConfig(nil); return err },
		"source: the path is empty":     func() error { _, err := FromFile("", Trust{}); return err },
	} {
		require.NotPanics(t, func() { require.ErrorContains(t, try(), want) }, want)
	}
	require.NotPanics(t, func() {
		d := Fixed(nil)
		require.Zero(t, d.Snapshot().Len())
		_, err := d.Conn("a")
		require.ErrorContains(t, err, "fixed: connection 0 is nil")
		var zero Ring
		require.Zero(t, zero.Snapshot().Len())
		_, err = zero.Conn("a")
		require.ErrorIs(t, err, ErrUnknownPeer)
	})
}
