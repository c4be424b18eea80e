// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// pages returns the pages of the repository that people write.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "evidence", "node_modules"}, d.Name())):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			paths = append(paths, path)
		}
		return nil
	}))
	require.Greater(t, len(paths), 20)
	return paths
}

var (
	heredoc  = regexp.MustCompile(`(?ms)<<'?END'?[^\n]*\n(.*?)^END$`)
	inline   = regexp.MustCompile(`(?m)echo '(\{apiVersion:.*?\})'`)
	document = regexp.MustCompile(`(?m)^---\n`)
)

// manifests returns the YAML documents in a block of code, also those that a shell writes.
func manifests(b docpage.Block) (texts []string) {
	switch b.Language {
	case "yaml":
		texts = document.Split(b.Text, -1)
	case "sh":
		for _, found := range append(heredoc.FindAllStringSubmatch(b.Text, -1), inline.FindAllStringSubmatch(b.Text, -1)...) {
			texts = append(texts, document.Split(found[1], -1)...)
		}
	}
	return texts
}

// TestPageManifests creates each object of the pages, whose type is one of Atoll's, in an API server with the CRDs. The
// server refuses unknown fields and wrong values. A list of peers is read as programs read it. The configurations of the
// programs are tested beside these programs.
func TestPageManifests(t *testing.T) {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	crds, err := config.TypedCRDs()
	require.NoError(t, err)
	kinds := map[string]*apiextensionsv1.CustomResourceDefinition{} // by apiVersion and kind
	for _, crd := range crds {
		require.NoError(t, server.AddCRD(crd))
		for _, v := range crd.Spec.Versions {
			kinds[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = crd
		}
	}
	client, err := dynamic.NewForConfig(server.Config())
	require.NoError(t, err)
	created, listed := 0, 0
	for _, path := range pages(t) {
		for _, b := range docpage.Blocks(t, path) {
			for _, text := range manifests(b) {
				obj := &unstructured.Unstructured{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(text), &obj.Object), "%s:%d", path, b.Line)
				switch crd := kinds[obj.GetAPIVersion()+" "+obj.GetKind()]; {
				case obj.Object["peers"] != nil && obj.GetKind() == "":
					requirePeers(t, path, text)
					listed++
				case crd == nil:
					require.Contains(t, []string{"GatewayConfiguration", "ManagerConfiguration"}, obj.GetKind(), "%s:%d", path, b.Line)
				default:
					if obj.GetName() == "" {
						obj.SetName("named-by-the-command")
					}
					if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
						obj.SetNamespace("default") // the namespaces of the pages do not exist here
					}
					to := client.Resource(obj.GroupVersionKind().GroupVersion().WithResource(crd.Spec.Names.Plural)).Namespace(obj.GetNamespace())
					strict := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
					_, err := to.Create(t.Context(), obj, strict)
					require.NoError(t, err, "%s:%d", path, b.Line)
					require.NoError(t, unstructured.SetNestedField(obj.Object, true, "spec", "misspelt"))
					_, err = to.Create(t.Context(), obj, strict)
					require.ErrorContains(t, err, "misspelt")
					created++
				}
			}
		}
	}
	require.Greater(t, created, 8)
	require.Greater(t, listed, 1)
}

// requirePeers requires that a list of peers can be read.
func requirePeers(t *testing.T, path, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	source, err := region.FromFile(file, region.Trust{})
	require.NoError(t, err, path)
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logr.Discard())) // the kubeconfigs do not exist
	defer cancel()
	peers := 0
	require.NoError(t, source.Run(ctx, func(snapshot *region.Snapshot) {
		for range snapshot.Peers() {
			peers++
		}
		cancel()
	}), path)
	require.Positive(t, peers, path)
}

var elsewhere = regexp.MustCompile(`(?m)^.* -C "\$ATOLL/.*$`) // paths from another folder

var inRepository = regexp.MustCompile(`(?:^|[ =])(?:\./)?((?:cmd|examples|config|internal|tools|docs|adapters)/[A-Za-z0-9_./-]+)`)

// Every file and folder of the repository that a command of a page names exists.
func TestPageCommandsNameFiles(t *testing.T) {
	named := 0
	for _, path := range pages(t) {
		for _, b := range docpage.Blocks(t, path) {
			if b.Language != "sh" && b.Language != "console" && b.Language != "" {
				continue
			}
			for _, m := range inRepository.FindAllStringSubmatch(elsewhere.ReplaceAllString(b.Text, ""), -1) {
				named++
				_, err := os.Stat(m[1])
				require.NoError(t, err, "%s:%d", path, b.Line)
			}
		}
	}
	require.Greater(t, named, 10)
}
