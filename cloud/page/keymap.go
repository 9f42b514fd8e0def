package page

// keyWords are keys of the console with what they do.
type keyWords struct {
	Name []string // of the keys
	Page string   // what they do
}

// AllKeys are the keys that work on every page of the console. Those of links are
// beside the links, and the script lists them.
func (f frame) AllKeys() (out []keyWords) {
	for _, x := range []struct {
		word string
		keys []string
	}{
		{"keys.title", []string{"?"}}, {"keys.search", []string{"/"}}, {"keys.rows", []string{"j", "k"}}, {"keys.choose", []string{"x"}},
		{"keys.open", []string{"Enter"}}, {"keys.step", []string{"e"}}, {"keys.messages", []string{"m"}}, {"keys.more", []string{"."}},
		{"keys.filter", []string{"f"}}, {"keys.send", []string{"Ctrl", "Enter"}}, {"keys.leave", []string{"Esc"}},
	} {
		out = append(out, keyWords{x.keys, f.T(x.word)})
	}
	return out
}
