// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logging"
)

func TestPrecedence(t *testing.T) {
	var fallback, given, chosen bytes.Buffer
	to := func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }
	before := slog.Default()
	slog.SetDefault(slog.New(to(&fallback)))
	defer slog.SetDefault(before)

	for _, test := range []struct {
		name   string
		given  bool // in the context
		chosen logr.Logger
		want   *bytes.Buffer
	}{
		{"slog.Default", false, logr.Logger{}, &fallback},
		{"the context's", true, logr.Logger{}, &given},
		{"the one of Options", true, logr.FromSlogHandler(to(&chosen)), &chosen},
		{"the one of Options without a context's", false, logr.FromSlogHandler(to(&chosen)), &chosen},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, b := range []*bytes.Buffer{&fallback, &given, &chosen} {
				b.Reset()
			}
			ctx := context.Background()
			if test.given {
				ctx = logr.NewContext(ctx, logr.FromSlogHandler(to(&given)))
			}
			logging.From(logging.Into(ctx, test.chosen, "syncer")).Info("hello")
			require.Contains(t, test.want.String(), "msg=hello logger=syncer")
			require.Equal(t, test.want.Len(), fallback.Len()+given.Len()+chosen.Len(), "one logger has the line")
		})
	}
}

func TestWithoutInto(t *testing.T) {
	var fallback bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&fallback, nil)))
	defer slog.SetDefault(before)
	logging.From(context.Background()).Info("hello")
	require.Contains(t, fallback.String(), "msg=hello")
}
