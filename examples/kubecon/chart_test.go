// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChart(t *testing.T) {
	svg := chart([]string{"a", "b"}, []sample{
		{0, []int{10, 0}},
		{5 * time.Second, []int{5, 5}},
		{10 * time.Second, []int{-1, 10}},
	})
	requireXML(t, svg)
	// The area is 720 by 260 pixels, from 40,30: 10 replicas are at the top.
	for _, path := range []string{
		`d="M40.0,30.0 400.0,30.0 400.0,160.0 760.0,160.0 760.0,290.0 760.0,290.0 760.0,290.0 760.0,290.0 760.0,290.0 400.0,290.0 400.0,290.0 40.0,290.0Z"`,
		`d="M40.0,30.0 400.0,30.0 400.0,30.0 760.0,30.0 760.0,30.0 760.0,30.0 760.0,290.0 760.0,290.0 760.0,160.0 400.0,160.0 400.0,30.0 40.0,30.0Z"`,
	} {
		require.Contains(t, svg, path)
	}
	for _, text := range []string{">a</text>", ">b</text>", ">10</text>", ">10.0s</text>"} {
		require.Contains(t, svg, text)
	}
	requireXML(t, chart([]string{"a"}, nil))
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, text)
	}
}
