// What is said of each kind of attention: of a translation, of one text alone, of a picture.

/** The kinds in the order in which they are offered. */
export const KINDS = ["cross", "encoder", "decoder"];

const TRANSLATION = {
  cross: {
    name: "Cross",
    title: "Cross-attention: the translation looks at the source",
    headings: ["source", "translation"],
    axes: ["translation, top to bottom", "source"],
    verb: "Writing ",
  },
  encoder: {
    name: "Encoder",
    title: "Encoder self-attention: the source looks at itself",
    headings: ["is looked at", "source looks"],
    axes: ["source, top to bottom", "source"],
    verb: "Reading ",
  },
  decoder: {
    name: "Decoder",
    title: "Decoder self-attention: the translation looks at what is written so far",
    headings: ["written so far", "writing"],
    axes: ["writing, top to bottom", "written so far"],
    verb: "Writing ",
  },
};
const TEXT = {
  encoder: {
    ...TRANSLATION.encoder,
    title: "Encoder self-attention: the text looks at itself",
    headings: ["is looked at", "looks"],
    axes: ["who looks, top to bottom", "what is looked at"],
  },
  decoder: { ...TRANSLATION.decoder, title: "Decoder self-attention: the text looks at what is written so far" },
};
const PICTURE = {
  encoder: {
    ...TEXT.encoder,
    title: "Encoder self-attention: the picture looks at itself",
    axes: ["the patch that looks, as row,column", "the patch that is looked at"],
    verb: "",
  },
};

/** What is said of the kinds of attention in lens data. */
export function wording(data) {
  if (data.picture) return PICTURE;
  return isOneText(data) ? TEXT : TRANSLATION;
}

/** Whether a model only read or only wrote. */
export function isOneText({ source, target }) {
  return !source.tokens.length || !target.tokens.length;
}
