// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

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
	c := Chart{Title: "replicas", Areas: []string{"a", "b"}, Samples: []Sample{
		{At: 0, Areas: []int{10, 0}},
		{At: 5 * time.Second, Areas: []int{5, 5}},
		{At: 10 * time.Second, Areas: []int{-1, 10}},
	}}
	requireXML(t, c.SVG())
	// The area is 720 by 260 pixels, from 40,30: 10 replicas are at the top.
	for _, path := range []string{
		`d="M40.0,30.0 400.0,30.0 400.0,160.0 760.0,160.0 760.0,290.0 760.0,290.0 760.0,290.0 760.0,290.0 760.0,290.0 400.0,290.0 400.0,290.0 40.0,290.0Z"`,
		`d="M40.0,30.0 400.0,30.0 400.0,30.0 760.0,30.0 760.0,30.0 760.0,30.0 760.0,290.0 760.0,290.0 760.0,160.0 400.0,160.0 400.0,30.0 40.0,30.0Z"`,
	} {
		require.Contains(t, c.SVG(), path)
	}
	for _, text := range []string{">a</text>", ">b</text>", ">10</text>", ">10.0s</text>"} {
		require.Contains(t, c.SVG(), text)
	}
	requireXML(t, Chart{Areas: []string{"a"}}.SVG())
}

func TestLinesAndMarks(t *testing.T) {
	c := Chart{Areas: []string{"a"}, Lines: []Line{{Name: "budget"}, {Name: "limit", Color: "red", Dashed: true}}, Samples: []Sample{
		{At: 0, Areas: []int{5}, Lines: []int{-1, 5}},
		{At: 5 * time.Second, Areas: []int{5}, Lines: []int{5, 10}},
		{At: 10 * time.Second, Areas: []int{5}, Lines: []int{0, 10}},
	}, Marks: []Mark{{At: 5 * time.Second, Text: "the load rises"}}}
	requireXML(t, c.SVG())
	for _, text := range []string{
		`stroke="black" stroke-width="1.5" points="40.0,290.0 400.0,290.0 400.0,160.0 760.0,160.0 760.0,290.0 760.0,290.0"`,
		`stroke="red" stroke-width="1.5" stroke-dasharray="5 3" points="40.0,160.0 400.0,160.0 400.0,30.0 760.0,30.0 760.0,30.0 760.0,30.0"`,
		`<line x1="400.0" x2="400.0" y1="30"`, `>1. the load rises, at 5.0s</text>`, `>limit</text>`,
	} {
		require.Contains(t, c.SVG(), text)
	}
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
