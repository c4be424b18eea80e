// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rival is one of the objects.
type Rival struct {
	Peer    string // empty in texts for readers that may not know the peers
	UID     string
	Created time.Time
}

func (r Rival) String() string {
	text := fmt.Sprintf("UID %s, created %s", r.UID, r.Created.UTC().Format(time.RFC3339))
	if r.Peer == "" {
		return text
	}
	return r.Peer + " (" + text + ")"
}

// Command returns the command that deletes an object of the name; namespace is empty for kinds without one.
func Command(resource, namespace, name string) string {
	text := "kubectl delete " + resource + " " + name
	if namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// Message names all rivals and the remedy: command deletes a rival. It is pure. The order of the rivals does not matter,
// and a rival that is listed twice counts once.
func Message(command string, all []Rival) string {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Rival) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	all = slices.CompactFunc(all, func(a, b Rival) bool { return a.Peer == b.Peer && a.UID == b.UID })
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.String()
	}
	return fmt.Sprintf("%d objects of this name were applied without a claim, and none of them holds the name: %s: keep one and delete the others there (%s), then a coordinator adopts it",
		len(all), strings.Join(texts, "; "), command)
}
