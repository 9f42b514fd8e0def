// Command check reads a stream of Kubernetes objects, YAML, from its standard input, and
// decodes each strictly as its kind: members that the kind does not have, or has twice, are
// errors. It prints kind and name of each. It is a module of its own, so that the programs
// do not depend on what it needs.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// kinds are the objects that are known.
var kinds = map[string]func() any{
	"v1/ConfigMap":                  func() any { return new(core.ConfigMap) },
	"v1/Service":                    func() any { return new(core.Service) },
	"apps/v1/StatefulSet":           func() any { return new(apps.StatefulSet) },
	"policy/v1/PodDisruptionBudget": func() any { return new(policy.PodDisruptionBudget) },
}

func run(in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for i, doc := range bytes.Split(raw, []byte("\n---")) {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return fmt.Errorf("object %d: %w", i+1, err)
		}
		if head.Kind == "" && strings.TrimSpace(string(doc)) == "" {
			continue
		}
		made := kinds[head.APIVersion+"/"+head.Kind]
		if made == nil {
			return fmt.Errorf("object %d: %s %q is none that the chart makes", i+1, head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, made()); err != nil {
			return fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
		}
		if _, err := fmt.Fprintln(out, head.Kind, head.Metadata.Name); err != nil {
			return err
		}
	}
	return nil
}
