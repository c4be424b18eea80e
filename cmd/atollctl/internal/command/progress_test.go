// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// screen returns the lines that a terminal shows after the written output.
func screen(written string) []string {
	lines := []string{""}
	for written != "" {
		if at := regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`).FindStringSubmatch(written); at != nil {
			up := 0
			for _, digit := range at[1] {
				up = 10*up + int(digit-'0')
			}
			lines = append(lines[:len(lines)-1-up], "")
			written = written[len(at[0]):]
			continue
		}
		if written[0] == '\n' {
			lines = append(lines, "")
		} else {
			lines[len(lines)-1] += written[:1]
		}
		written = written[1:]
	}
	return lines
}

func TestDisplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &display{out: &out, progress: fanout.NewProgress(nil), now: time.Now}
		event := func(peer, verb, code string, done bool) fanout.StepEvent {
			return fanout.StepEvent{
				Operation: "1", Kind: schema.GroupKind{Kind: "Account"}, Key: types.NamespacedName{Name: "acme"},
				Peer: region.PeerName(peer), Verb: verb, Code: code, Done: done,
			}
		}
		require.NoError(t, d.show(time.Second, func() error {
			d.progress.Step(t.Context(), event("eu", "create", "", false))
			d.progress.Step(t.Context(), event("us", "create", "", false))
			d.progress.Step(t.Context(), event("eu", "create", "OK", true))
			time.Sleep(900 * time.Millisecond)
			require.Empty(t, out.String(), "a quick command shows no progress")
			time.Sleep(2100 * time.Millisecond)
			synctest.Wait() // show draws the progress at this moment, and may not have finished
			shown := screen(out.String())
			require.Len(t, shown, 3)
			require.Equal(t, "Account acme: eu: held", shown[0])
			require.Regexp(t, `^Account acme: us: reserving, no answer since \S+ \(3s\)$`, shown[1])
			d.above(func() { out.WriteString("a line\n") })
			shown = screen(out.String())
			require.Equal(t, "a line", shown[0])
			require.Len(t, shown, 4)
			return nil
		}))
		require.Equal(t, []string{"a line", ""}, screen(out.String()), "it is taken away")
	})
}

// On a terminal a long command shows a line for each peer, and erases these lines before its final
// output.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"atollctl", "--wal", filepath.Join(dir, "operations.db"), "--create-wal"}
	servers := map[string]*server{}
	for _, name := range []string{"eu", "us"} {
		s := newServer(t.Cleanup, func(err error) { require.NoError(t, err) }, name, true)
		servers[name] = s
		path := filepath.Join(dir, name+".kubeconfig")
		require.NoError(t, writeFile(path, s.kubeconfig))
		args = append(args, "--kubeconfig", name+"="+path)
	}
	file := filepath.Join(dir, "acme.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata: {name: acme}\nspec: {roles: [Provider]}\n"), 0o600))
	run := func(more ...string) (int, string) {
		var out, errOut bytes.Buffer
		s := &session{in: strings.NewReader(""), out: &out, errOut: &errOut, getenv: os.Getenv, now: time.Now, cleanup: time.Second, terminal: true}
		return s.execute(context.Background(), append(args[:len(args):len(args)], more...)), errOut.String()
	}
	code, text := run("peer", "init")
	require.Equal(t, exitDone, code, text)
	servers["us"].Partition(true)
	code, text = run("account", "add", "-f", file, "--target", "eu", "--unreachable", "wait", "--timeout", "8s")
	require.Equal(t, exitFailed, code, text)
	require.Contains(t, text, "Account acme: eu: held\n")
	require.Regexp(t, `Account acme: us: reserving, no answer since \S+ \(\ds\)`, text)
	shown := screen(text)
	require.True(t, strings.HasPrefix(shown[0], "error: "), "%q", shown)
}
