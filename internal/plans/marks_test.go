// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unwritten lists labels, annotations and finalizers that occur in the source and that no scenario
// writes. The value tells where each occurs, or which client writes it.
var unwritten = map[string]string{
	"atoll.dev/schema-version":                "on our CustomResourceDefinitions; `config.InstallCRDs` writes it",
	"fanout.atoll.dev/release-removal":        "a person writes it, with `atollctl`",
	"fanout.atoll.dev/removal-held":           "why the deletion of an Account is held: a Coordinator writes it on the primary in a peer, under `atoll-fanout`, a Replicator on the Account of a central plane, under `atoll-replicator`",
	"router.atoll.dev/incomplete":             "in merged lists of a router, never stored",
	"router.atoll.dev/region":                 "in merged lists of a router, never stored",
	"splitter.atoll.dev/divide-indexes":       "a person writes it on an Indexed Job",
	"splitter.atoll.dev/leave-volumes":        "a person, or a program that has copied volumes, writes it on a StatefulSet",
	"splitter.atoll.dev/ordinals":             "the ordinals of each cluster: on a StatefulSet that asks for unique ones, and on its shards; a Splitter writes it, under `atoll-splitter`",
	"splitter.atoll.dev/ordinals-per-cluster": "a person writes it on a StatefulSet",
	"splitter.atoll.dev/weight":               "a person writes it on a SyncTarget",
	"join.atoll.dev/expires":                  "`join.NewToken` writes it on the ServiceAccount of a token",
	"join.atoll.dev/target":                   "`join.NewToken` writes it on the ServiceAccount of a token",
	"join.atoll.dev/token":                    "`join.NewToken` writes it on the ServiceAccount of a token",
	"join.atoll.dev/used-by":                  "a join.Approver writes it on the ServiceAccount of a token, under `atoll-join`",
	"syncer.atoll.dev/abandon":                "a person writes it on a SyncTarget",
	"atoll.dev/peers":                         "in a file",
	"atoll.dev/routes":                        "in a file",
	"atoll.dev/wal":                           "in a file",
}

var literal = regexp.MustCompile("[\"`=]((?:[a-z-]+\\.)*(?:atoll\\.dev|kcp\\.io|kubecarrier\\.io)/[A-Za-z0-9./-]*)[\"`=]")

// TestMarks requires that each label, annotation and finalizer in the source is in the table of
// fields or in unwritten, and not in both.
func TestMarks(t *testing.T) {
	found := map[string]string{}
	for _, room := range []string{"account", "config", "events", "fanout", "region", "router", "splitter", "syncer", "wal"} {
		root := os.DirFS("../..")
		require.NoError(t, fs.WalkDir(root, room, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "regiontest":
				return fs.SkipDir
			case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			source, err := fs.ReadFile(root, name)
			for _, m := range literal.FindAllStringSubmatch(string(source), -1) {
				if !strings.HasSuffix(m[1], "/v1alpha1") {
					found[m[1]] = name
				}
			}
			return err
		}))
	}
	require.Contains(t, found, "splitter.atoll.dev/parent", "the search finds marks")
	for mark, in := range found {
		listed := slices.ContainsFunc(fields, func(r row) bool {
			return strings.Contains(r.path, "["+mark) && (strings.HasSuffix(mark, "/") || strings.Contains(r.path, "["+mark+"]"))
		})
		_, known := unwritten[mark]
		require.NotEqual(t, listed, known, "%s in %s: listed %t, unwritten %t", mark, in, listed, known)
	}
	for mark := range unwritten {
		require.Contains(t, found, mark)
	}
}

// marks returns the section of docs/evidence/writers.md with the table unwritten.
func marks() string {
	var text strings.Builder
	text.WriteString("| mark | where |\n|---|---|\n")
	for _, mark := range slices.Sorted(maps.Keys(unwritten)) {
		fmt.Fprintf(&text, "| `%s` | %s |\n", mark, unwritten[mark])
	}
	return text.String()
}
