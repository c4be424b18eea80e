// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const widePolicy = "ClusterPlacementPolicy"

func (s *session) placement() *cobra.Command {
	c := &cobra.Command{Use: "placement", Short: "Preview where a policy places objects"}
	c.AddCommand(s.placementPreview())
	return c
}

func (s *session) placementPreview() *cobra.Command {
	var upstream, file, namespace string
	var workloads []string
	c := &cobra.Command{
		Use:   "preview -f FILE --upstream KUBECONFIG",
		Short: "Show which objects a placement policy would move",
		Long: `Show which objects the PlacementPolicy or ClusterPlacementPolicy in the file would move,
and from which clusters to which, if it were applied. The policy replaces the one with
its name. The command writes nothing, and decides as the placement controller does. It
omits moves that the controller makes without the policy. A cluster that is not ready
keeps its objects. Taints count as at this moment: the output does not have moves that
follow when the seconds of a toleration end. FILE may be - for standard input.

It needs list of the policies, namespaces, synctargets, workloads, configmaps, secrets,
serviceaccounts, persistentvolumeclaims, services, ingresses and networkpolicies, for a
PlacementPolicy only in its namespace. Without the right to list a type that is not a
workload, a warning names the type, and its objects are not shown. Of Secrets and
ConfigMaps only the metadata are read. With --workloads, name the types that the
controller divides.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			policy, err := s.readPolicy(file, namespace)
			if err != nil {
				return err
			}
			var opts placement.Options
			for _, name := range workloads {
				opts.Workloads = append(opts.Workloads, schema.ParseGroupResource(name).WithVersion("v1"))
			}
			api, _, err := openUpstream(upstream)
			if err != nil {
				return err
			}
			observed, err := s.observed(ctx, api, policy.GetNamespace(), opts)
			if err != nil {
				return err
			}
			moves, err := placement.Preview(observed, policy, opts)
			return errors.Join(s.printMoves(policy, moves), err)
		}),
	}
	c.Flags().StringVar(&upstream, "upstream", "", "`kubeconfig` of the upstream; required")
	c.Flags().StringVarP(&file, "filename", "f", "", "`file` with the policy")
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "`namespace` of a PlacementPolicy, if the file has none")
	c.Flags().StringSliceVar(&workloads, "workloads", []string{"deployments.apps"}, "the divided `types`, as resource.group")
	return c
}

// readPolicy reads a PlacementPolicy or ClusterPlacementPolicy from a file.
func (s *session) readPolicy(path, namespace string) (*unstructured.Unstructured, error) {
	data, err := s.readFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := onlyDocument(data)
	if err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	typed, gvk, err := strict.Decode(doc, nil, nil)
	if err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	if gvk.Kind != widePolicy && gvk.Kind != "PlacementPolicy" {
		return nil, badInput("", "%s: holds %s, want PlacementPolicy or %s", path, gvk.Kind, widePolicy)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	policy := &unstructured.Unstructured{Object: content}
	if err := checkObjectName(policy.GetName()); err != nil {
		return nil, err
	}
	if gvk.Kind == widePolicy {
		if namespace != "" || policy.GetNamespace() != "" {
			return nil, badInput("omit the namespace", "a %s has no namespace", widePolicy)
		}
		return policy, nil
	}
	return policy, settle("namespace", namespace, policy.GetNamespace(), policy.SetNamespace)
}

// observed reads the input of a preview, in one namespace if it is not empty. It leaves out the types of objects that the
// user may not list, except workloads.
func (s *session) observed(ctx context.Context, api region.API, namespace string, opts placement.Options) (placement.Observed, error) {
	o := placement.Observed{Now: s.now(), Namespaces: map[string]map[string]string{}, Objects: map[schema.GroupVersionResource][]*unstructured.Unstructured{}}
	targets, err := upstreamList(ctx, api, syncerv1alpha1.GroupVersion.WithResource("synctargets"), "")
	if err != nil {
		return o, err
	}
	o.Clusters = splitter.ReadClusters(targets, o.Now)
	for resource, in := range map[string]string{"placementpolicies": namespace, "clusterplacementpolicies": ""} {
		policies, err := upstreamList(ctx, api, v1alpha1.GroupVersion.WithResource(resource), in)
		if err != nil {
			return o, err
		}
		o.Policies = append(o.Policies, policies...)
	}
	namespaces, err := upstreamList(ctx, api, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
	if err != nil {
		return o, err
	}
	for _, n := range namespaces {
		o.Namespaces[n.GetName()] = n.GetLabels()
	}
	workloads, others := opts.Resources()
	for _, resource := range slices.Concat(workloads, others) {
		objects, err := upstreamList(ctx, api, resource, namespace)
		switch {
		case (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) && slices.Contains(others, resource):
			s.warn("%s are not read, so their moves are not shown: %s", resource.GroupResource(), oneLine(err))
		case err != nil:
			return o, err
		default:
			o.Objects[resource] = objects
		}
	}
	return o, nil
}

// upstreamList lists a resource of an upstream. Of types with confidential or large content it reads only the metadata.
func upstreamList(ctx context.Context, api region.API, resource schema.GroupVersionResource, namespace string) ([]*unstructured.Unstructured, error) {
	all := []*unstructured.Unstructured{} // not nil: the type is known
	opts := metav1.ListOptions{Limit: pageSize}
	onlyMetadata := resource.Group == "" && slices.Contains([]string{"secrets", "configmaps", "persistentvolumeclaims", "namespaces"}, resource.Resource)
	for {
		var next string
		var err error
		if onlyMetadata {
			var page *metav1.PartialObjectMetadataList
			if page, err = api.Metadata().Resource(resource).Namespace(namespace).List(ctx, opts); err == nil {
				for i := range page.Items {
					item := &unstructured.Unstructured{Object: map[string]any{}}
					item.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&page.Items[i])
					if err != nil {
						break
					}
					all = append(all, item)
				}
				next = page.Continue
			}
		} else {
			var page *unstructured.UnstructuredList
			if page, err = api.Dynamic().Resource(resource).Namespace(namespace).List(ctx, opts); err == nil {
				for i := range page.Items {
					all = append(all, &page.Items[i])
				}
				next = page.GetContinue()
			}
		}
		switch {
		case apierrors.IsForbidden(err):
			return nil, &problem{code: exitInput, err: fmt.Errorf("list %s: %w", resource.GroupResource(), err), remedy: "grant list of " + resource.GroupResource().String()}
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		case next == "":
			return all, nil
		}
		opts.Continue = next
	}
}

func (s *session) printMoves(policy *unstructured.Unstructured, moves []placement.Move) error {
	l := listing{columns: []string{"Namespace", "Object", "From", "To", "Policy", "Shares"}}
	for _, m := range moves {
		shares := "unchanged"
		if m.Redivided {
			shares = "changed"
		}
		name := m.Resource.String() + "/" + m.Object.Name
		l.items = append(l.items, item{
			cells: []any{m.Object.Namespace, name, or(strings.Join(m.From, ",")), or(strings.Join(m.To, ",")), or(m.By), shares},
			object: object("Move", m.Object.Name, map[string]any{
				"resource": m.Resource.Resource, "group": m.Resource.Group, "namespace": m.Object.Namespace,
				"from": listOf(m.From), "to": listOf(m.To), "policy": m.By, "redivided": m.Redivided,
			}),
		})
	}
	if s.output == formatTable && len(moves) == 0 {
		fmt.Fprintf(s.errOut, "%s %s would move nothing\n", policy.GetKind(), policy.GetName())
		return nil
	}
	return s.print(l)
}

func listOf(names []string) []any {
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	return list
}
