#include "systems/pages/look.h"

#include <map>

namespace fovea::systems {
namespace {

// One or two sentences about the first picture. They must hold for any data: facts of a run are in
// the picture itself.
const std::map<std::string, const char*> kLooks = {
    {"nadaraya-watson",
     "Move the bandwidth: a small one follows every observation, a large one ends at the mean of "
     "all. The observations near the query carry the weight."},
    {"pooling",
     "The same bag under the pooling and under attention: pooling gives every item the same "
     "share, attention asks which items speak for the label. Below, the items as points, and the "
     "one point that is left of them."},
    {"deep-sets",
     "A sum is exact only if every member was read right, so its curve falls slowly with the size; "
     "the recurrent network's falls at once where its training sizes end."},
    {"deep-sets solids",
     "The larger a point, the more coordinates of the maximum it gave: a few points at corners and "
     "edges decide what the solid is."},
    {"deep-sets tags",
     "Outlined tags were hidden. Beside z the right ones are found; from the tags alone the light "
     "has "
     "to be guessed."},
    {"set-outlier",
     "One member of each set is odd, and the outline marks it: is its bar the longest?"},
    {"mil",
     "The outlined instances are what makes a bag positive. Nobody told the network which they "
     "are; the weights say what it found."},
    {"word2vec", "Names that lie together keep the same company in the text, whatever they mean."},
    {"word-sum",
     "Every word has weight 1; its bar is what it adds. “great” has the same bar with “not” and "
     "without: the answer is the sign of the sum."},
    {"fixed-attention",
     "Each query θ shades the words it looks for; what one of them does not look at, another may."},
    {"general",
     "Each question names the country of a pair: its line should go there. The truth is dashed, "
     "and thick lines should lie on it."},
    {"gradient-masking",
     "Move the difference of the scores: the branch with the small weight receives next to no "
     "gradient, and the scores have none once the choice is made."},
    {"document-attention",
     "One sentence, two questions: the shading moves to the words about what was asked, and the "
     "answer turns."},
    {"hierarchical",
     "The bar is the weight of a sentence, the shade the weight of a word in it. The sentences "
     "that decide are marked at the left."},
    {"squeeze-excitation",
     "One channel holds the digit that counts, and is outlined: its gate should be open and the "
     "others shut."},
    {"gat",
     "Thick edges are neighbours the node listens to. Click a neighbour to stand there instead; "
     "surveys, which tell nothing, should have thin edges."},
    {"memory-network",
     "Each column is one hop. The facts the answer needs are marked at the left: a question that "
     "needs two is answered by two hops."},
    {"show-attend-tell",
     "Step through the words: the weights jump to the digit whose name is said, which is outlined. "
     "The cells are the regions; the smooth overlay is the same weights, and both are blurrier "
     "than what the model knows."},
    {"stacked-attention",
     "Hop by hop the light moves: first to the thing that is named, then to the place asked "
     "about."},
    {"image-to-set",
     "Choose a label: the light moves to where it was seen. Where the truth is known, its place is "
     "outlined."},
    {"inverse-cooking",
     "Choose a word: the light is what it took from the picture; the rest of its attention lies on "
     "the list of ingredients. The next tab has both, word by word."},
    {"dnc",
     "Each word is written into a row of its own. In the next picture, reading should follow the "
     "order of writing."},
    {"ntm",
     "A head that steps from row to row draws a diagonal. In the next picture the reading head "
     "should come by the same rows again, in the same order."},
    {"mixture-of-experts",
     "Each expert has learned the part it was sent: one piece of the data, one expert. Move the "
     "epoch and see the gate divide the work."},
    {"seq2seq",
     "The longer the source, the lower the curve: one vector has to carry the whole sentence. With "
     "attention the curve stays up."},
    {"bahdanau",
     "Read a row: for this output word, where did the decoder look? Where the words change places, "
     "the large weights leave the diagonal."},
    {"luong",
     "Read a row: for this output, where did the decoder look? One product of two states is enough "
     "to find the place, wherever the day, the month and the year stand."},
    {"gnmt",
     "Read a row: the bottom layer alone attends, and every layer above is given what it read."},
    {"alignment",
     "Outlined cells are the true links, large weights are where the model looked. It was "
     "never shown a link."},
    {"convs2s",
     "Every decoder layer looks for itself: choose one above the picture and see which of them has "
     "found the source words."},
    {"beam-search",
     "The bold path won. Greedy search takes the likeliest word at each step; where that leads "
     "another way, the way is purple. A less likely word there can end in a better sentence."},
    {"scaled-dot-product",
     "Put the finger on “it”: the line to what it stands for is thick, and the table "
     "below shows the six steps to that weight. Where there is a second sentence, it ends in "
     "another word: the line moves."},
    {"multi-head",
     "One query, every head in its own colour: one finds who acts, another what is done, another "
     "to whom."},
    {"transformer",
     "Each tile is one layer and head: click one. The best ones have found, for each output, the "
     "place in the source that it comes from."},
    {"dynamic-convolution",
     "A band and no more: a word reads its neighbours by their offset, and no key is compared. The "
     "bars are the kernel; choose another head, it reads on another side."},
    {"bert",
     "The masked place looks at both sides of it. Below are the words it could be, with their "
     "probabilities."},
    {"next-word",
     "Only words before the blank have a line to it. The strongest one should come from the word "
     "that decides what follows."},
    {"relative-positions",
     "Each note, symbol or node should look at the one thing that decides it: always the same way "
     "back, which is one straight column by distance, or along the edge with the right label."},
    {"sparse-patterns",
     "Blue pixels were drawn one by one. Each saw only what its pattern allows: pixels to its left "
     "and those straight above."},
    {"structured-attention",
     "Words and symbols are weighed as parts of a whole: a run without gaps, a tree. Softmax of "
     "the same scores, beside it, weighs each of them alone."},
    {"sparse-normalisers",
     "Softmax bends towards 0 and 1 and never arrives; the other two touch them, sparsemax with a "
     "corner. Beyond that lead the other key is not read at all."},
    {"cost",
     "Where the lines of self-attention and of the LSTM cross, the cheaper layer changes: "
     "attention "
     "is it to the left, the LSTM to the right. A marker shows where counting operations puts the "
     "crossing."},
};

// Where the sentence above tells of generated data, of a truth that files do not have, or of words
// that a user did not bring.
const std::map<std::string, const char*> kOwnLooks = {
    {"nadaraya-watson",
     "The observations near the place asked about carry the weight. Over one input, move the "
     "bandwidth; over two, a line joins the places with the same answer."},
    {"mil",
     "The larger the weight, the more an instance decides about its bag. Nobody told the network "
     "which instances these are."},
    {"gat",
     "Thick edges are neighbours the node listens to. Click a neighbour to stand there instead."},
    {"deep-sets tags", "The tags that go with those given; beside z, and without it."},
    {"general", "Each line goes from a question to the pair it reads; thick lines are read most."},
    {"document-attention",
     "The shading lies on the words that decide about what was asked. Mistakes, if there are any, "
     "come first."},
    {"word-sum",
     "Every word has weight 1; the colour is what it adds to the answer, which is the class with "
     "the largest sum. Mistakes, if there are any, come first."},
    {"deep-sets",
     "Shuffle the members: the answer stays, because features of members are added up."},
    {"show-attend-tell",
     "Step through the words: the weights move to what each word says. The cells are the regions; "
     "the smooth overlay is the same weights, and both are blurrier than what the model knows."},
    {"sparse-patterns",
     "Blue pixels were drawn one by one. Each saw only what its pattern allows."},
    {"relative-positions", "Read a row: at which distance, or along which label, does it look?"},
    {"transformer", "Each tile is one layer and head: click one, and see what it looks at."},
    {"convs2s", "Every decoder layer looks for itself: choose one above the picture."},
    {"multi-head", "One query, every head in its own colour: do they look at different words?"},
    {"inverse-cooking",
     "Choose a word: the light is what it took from the picture; the rest of its attention lies on "
     "the list of ingredients."},
    {"fixed-attention",
     "Each query θ shades the words it looks for; what one of them does not look at, another may. "
     "Mistakes, if there are any, come first."},
    {"hierarchical",
     "The bar is the weight of a sentence, the shade the weight of a word in it. Mistakes, if "
     "there are any, come first."},
    {"squeeze-excitation", "Each bar is a gate: an open one lets its channel through."},
    {"memory-network", "Each column is one hop: it shows which lines of the story were read."},
    {"stacked-attention", "Hop by hop the light moves over the picture, to what the answer needs."},
    {"dnc", "Each column is a step: what it wrote, and which rows it read."},
    {"mixture-of-experts", "Large weights: which expert the gate asks for which part of the data."},
    {"seq2seq", "The longer the source, the more one vector has to carry."},
    {"luong", "Read a row: for this output, where did the decoder look?"},
    {"alignment", "Large weights are where the model looked. It was never shown a link."},
    {"scaled-dot-product", "Put the finger on a word: the lines go to the words it reads."},
    {"set-outlier", "The tallest bar is the member that belongs least to the others."},
};

}  // namespace

std::string look_at_own(const std::string& system, const std::string& task) {
  auto found = kOwnLooks.find(system + " " + task);
  if (found == kOwnLooks.end()) found = kOwnLooks.find(system);
  return found == kOwnLooks.end() ? look_at(system, task) : found->second;
}

std::string look_at(const std::string& system, const std::string& task) {
  auto found = kLooks.find(system + " " + task);
  if (found == kLooks.end()) found = kLooks.find(system);
  return found == kLooks.end() ? "" : found->second;
}

}  // namespace fovea::systems
