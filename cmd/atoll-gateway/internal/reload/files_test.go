// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Files that belong together are applied together, each change once. Contents that cannot be read or applied change nothing, are
// logged once, and are applied as soon as they can be.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a", "a1")
	write("b", "b1")
	synctest.Test(t, func(t *testing.T) {
		var applied []string
		f, err := New("pair", func(contents ...[]byte) error {
			if string(contents[0]) == "bad" {
				return errors.New("it is bad")
			}
			applied = append(applied, string(contents[0])+string(contents[1]))
			return nil
		}, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
		require.NoError(t, err)
		lines := logtest.New()
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), lines.Logger()))
		ended := make(chan error)
		go func() { ended <- f.Start(ctx) }()
		step := func(want ...string) {
			t.Helper()
			time.Sleep(3 * Interval)
			synctest.Wait()
			require.Equal(t, want, applied)
		}
		step("a1b1")
		write("b", "b2")
		step("a1b1", "a1b2")
		write("a", "bad")
		step("a1b1", "a1b2")
		require.NoError(t, os.Remove(filepath.Join(dir, "b")))
		step("a1b1", "a1b2")
		write("a", "a3")
		step("a1b1", "a1b2")
		write("b", "b2")
		step("a1b1", "a1b2", "a3b2")
		write("a", "bad")
		step("a1b1", "a1b2", "a3b2")
		write("a", "a3") // applied already
		step("a1b1", "a1b2", "a3b2")
		cancel()
		require.NoError(t, <-ended)
		bad, again := 0, 0
		for _, line := range lines.List() {
			if strings.Contains(line, "it is bad") {
				bad++
			}
			if strings.Contains(line, "read again") {
				again++
			}
		}
		require.Equal(t, 2, bad)
		require.Equal(t, 3, again)
	})
	_, err := New("x", nil, filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "x: ")
}
