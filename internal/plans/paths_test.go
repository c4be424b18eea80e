// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pathsOf returns the paths of the leaves of a FieldsV1, with the keys or values of list items in
// brackets.
func pathsOf(fields []byte) []string {
	var tree map[string]any
	if err := json.Unmarshal(fields, &tree); err != nil {
		return nil
	}
	return leavesOf("", tree)
}

func leavesOf(prefix string, tree map[string]any) []string {
	var paths []string
	for key, below := range tree {
		path := prefix
		switch kind, name, _ := strings.Cut(key, ":"); kind {
		case "f":
			if strings.ContainsAny(name, "./") {
				path += "[" + name + "]"
			} else {
				path = strings.TrimPrefix(prefix+"."+name, ".")
			}
		case "k", "v":
			path += "[" + strings.Trim(name, `"`) + "]"
		default: // ".": the field itself
			continue
		}
		children, _ := below.(map[string]any)
		if deeper := leavesOf(path, children); len(deeper) > 0 {
			paths = append(paths, deeper...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

var (
	mark      = regexp.MustCompile(`^metadata\.(labels|annotations|finalizers)\[?([^\]]*)\]?$`)
	condition = regexp.MustCompile(`^(status\.conditions)\[\{"type":"([^"]+)"\}\]`)
	element   = regexp.MustCompile(`\[.*`)
	ours      = regexp.MustCompile(`^[\w.-]*(atoll\.dev|kcp\.io|kubecarrier\.io)/`)
)

// shorten removes the parts of a path that depend on a scenario. It replaces the name of a cluster
// or a peer with NAME, and a user's label, annotation or finalizer with *. It cuts the path of a
// field in a condition after the condition, a path in spec.fanout after three levels, a path in data
// after one, and any other path after two. It returns "" for metadata.labels, metadata.annotations
// and metadata.finalizers themselves.
func shorten(path string) string {
	if m := mark.FindStringSubmatch(strings.Replace(path, "metadata.labels.", "metadata.labels[", 1)); m != nil {
		switch {
		case m[2] == "", m[2] == "perturb.atoll.dev/edited": // a fault writes perturb.atoll.dev/edited
			return ""
		case ours.MatchString(m[2]):
			return "metadata." + m[1] + "[" + shortenName(m[2], "/") + "]"
		default:
			return "metadata." + m[1] + "[*]"
		}
	}
	if m := condition.FindStringSubmatch(path); m != nil {
		return m[1] + "[" + shortenName(m[2], ".") + "]"
	}
	parts := strings.Split(element.ReplaceAllString(path, ""), ".")
	levels := 2
	if strings.HasPrefix(path, "spec.fanout.") {
		levels = 3
	}
	switch parts[0] {
	case "data", "binaryData", "stringData":
		levels = 1
	}
	return strings.Join(parts[:min(len(parts), levels)], ".")
}

var last = regexp.MustCompile(`^(a|b|c|ap|eu|us)$`)

// shortenName replaces the name of a cluster or a peer at the end of a name.
func shortenName(name, separator string) string {
	if i := strings.LastIndex(name, separator); i >= 0 && last.MatchString(name[i+1:]) {
		return name[:i+1] + "NAME"
	}
	return name
}

func TestPathsOf(t *testing.T) {
	require.ElementsMatch(t, []string{
		"metadata.annotations[a.b/c]", "metadata.labels.app", "metadata.finalizers[x/y]", `spec.list[{"name":"a"}].name`, `spec.list[{"name":"a"}].value`, "spec.replicas",
	}, pathsOf([]byte(`{"f:metadata":{"f:annotations":{".":{},"f:a.b/c":{}},"f:labels":{"f:app":{}},"f:finalizers":{".":{},"v:\"x/y\"":{}}},
		"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}},"f:replicas":{}}}`)))
}

func TestShorten(t *testing.T) {
	for path, short := range map[string]string{
		"metadata.labels":                                        "",
		"metadata.finalizers":                                    "",
		"metadata.labels.app":                                    "metadata.labels[*]",
		"metadata.annotations[example.com/x]":                    "metadata.annotations[*]",
		"metadata.labels[workloads.kcp.io/cluster]":              "metadata.labels[workloads.kcp.io/cluster]",
		"metadata.labels[state.workload.kcp.io/eu]":              "metadata.labels[state.workload.kcp.io/NAME]",
		"metadata.finalizers[syncer.atoll.dev/a]":                "metadata.finalizers[syncer.atoll.dev/NAME]",
		"metadata.finalizers[syncer.atoll.dev/synctarget]":       "metadata.finalizers[syncer.atoll.dev/synctarget]",
		`metadata.ownerReferences[{"uid":"1-2"}]`:                "metadata.ownerReferences",
		`status.conditions[{"type":"PresentIn.eu"}].reason`:      "status.conditions[PresentIn.NAME]",
		`status.conditions[{"type":"Ready"}].lastTransitionTime`: "status.conditions[Ready]",
		`status.peers.missing[eu]`:                               "status.peers",
		`spec.template.spec.containers[{"name":"web"}].image`:    "spec.template",
		`spec.ports[{"port":80,"protocol":"TCP"}].port`:          "spec.ports",
		"spec.fanout.claim.primary.uid":                          "spec.fanout.claim",
		"spec.replicas":                                          "spec.replicas",
		"data.value":                                             "data",
		"data[a.b]":                                              "data",
		"rules":                                                  "rules",
	} {
		require.Equal(t, short, shorten(path), path)
	}
	require.Equal(t, "atoll-syncer-status-NAME", shortenName("atoll-syncer-status-a", "-"))
	require.Equal(t, "atoll-syncer", shortenName("atoll-syncer", "-"))
}
