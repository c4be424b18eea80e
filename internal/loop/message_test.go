// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/loop"
)

func TestShorten(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"empty":         {"", ""},
		"as long":       {strings.Repeat("a", 64), strings.Repeat("a", 64)},
		"longer":        {strings.Repeat("a", 65), strings.Repeat("a", 45) + "... (20 more bytes)"},
		"no half runes": {strings.Repeat("ä", 40), strings.Repeat("ä", 22) + "... (36 more bytes)"},
		"no UTF-8":      {"a\xffb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, loop.Shorten(test.message, 64)) })
	}
}

func TestShortenIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message := strings.Repeat(rapid.String().Draw(t, "message")+string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")), rapid.IntRange(1, 50).Draw(t, "times"))
		most := rapid.IntRange(64, 300).Draw(t, "most")
		got := loop.Shorten(message, most)
		require.LessOrEqual(t, len(got), most)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, loop.Shorten(got, most))
		valid := strings.ToValidUTF8(message, "\uFFFD")
		if len(valid) <= most {
			require.Equal(t, valid, got)
			return
		}
		at := strings.LastIndex(got, "... (")
		require.True(t, strings.HasPrefix(valid, got[:at]))
		require.Equal(t, fmt.Sprintf("... (%d more bytes)", len(valid)-at), got[at:])
		require.Greater(t, at, most-30, "only as much as necessary is cut")
	})
}
